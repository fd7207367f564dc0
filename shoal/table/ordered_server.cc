#include "shoal/table/ordered_server.h"

#include <utility>

namespace shoal::table {

OrderedServer::OrderedServer(std::unique_ptr<Order> order, net::Rank members, const Surroundings& around, const Make& make)
    : members_(members), order_(std::move(order)),
      in_order_(std::make_shared<InOrder>(*order_, [this](Order::Source source) { return drains(source); })) {
  Surroundings told = around;
  told.idle = [this, idle = around.idle](net::Rank to) { return order_->answer(idle(to) ? 1 : 0) != 0; };
  told.now = [this, now = around.now] { return order_->now(now()); };
  told.off_loop = [event = done(), weak = std::weak_ptr(in_order_), off_loop = around.off_loop](std::function<void()> job,
                                                                                              std::function<void()> then) {
    off_loop(std::move(job), [event, weak, then = std::move(then)] {
      if (const auto in_order = weak.lock()) in_order->comes(event, then);
    });
  };
  server_ = make(told);
}

void OrderedServer::take(net::Rank from, Message message) {
  const Order::Event event{from, print_of(message)};
  in_order_->comes(event, [this, from, message = std::move(message)]() mutable { server_->take(from, std::move(message)); });
}

void OrderedServer::leaves(net::Rank reader) {
  in_order_->comes(leaving(reader), [this, reader] { server_->leaves(reader); });
}

// In a replay it happens when it did, whatever drains here.
void OrderedServer::drained(net::Rank reader) {
  if (order_->next()) return;
  order_->happens(draining(reader));
  server_->drained(reader);
}

bool OrderedServer::drains(Order::Source source) {
  const net::Rank reader = source - 2 * members_;
  if (source < 2 * members_ || reader >= members_) return false;
  order_->happens(draining(reader));
  server_->drained(reader);
  return true;
}

}  // namespace shoal::table
