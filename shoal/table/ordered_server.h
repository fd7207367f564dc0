// A server whose order of messages is recorded, or kept to (order.h). Threads: the transport's loop.
#pragma once

#include <functional>
#include <memory>

#include "shoal/table/order.h"
#include "shoal/table/shard.h"

namespace shoal::table {

class OrderedServer final : public Server {
 public:
  using Make = std::function<std::unique_ptr<Server>(const Surroundings& around)>;
  // Of the server that make() makes, in surroundings that answer as they are noted to have answered. Not where members may be lost.
  OrderedServer(std::unique_ptr<Order> order, net::Rank members, const Surroundings& around, const Make& make);

  const Spec& spec() const override { return server_->spec(); }
  void take(net::Rank from, Message message) override;
  void leaves(net::Rank reader) override;
  void drained(net::Rank reader) override;
  Clock completed(std::uint32_t worker) const override { return server_->completed(worker); }
  Clock reached() const override { return server_->reached(); }
  std::uint64_t met() const override { return server_->met(); }
  void lose(net::Rank member) override { server_->lose(member); }
  void cut(const Last& last) override { server_->cut(last); }
  void give(net::Rank to, std::uint64_t number, const std::vector<bool>& silent) override { server_->give(to, number, silent); }
  void give_up() override { server_->give_up(); }
  void expect(net::Rank giver, std::uint64_t number) override { server_->expect(giver, number); }
  bool is_whole() const override { return server_->is_whole(); }
  bool is_idle() const override { return server_->is_idle(); }
  void part() override { server_->part(); }
  bool has_parted() const override { return server_->has_parted(); }
  void stop() override { server_->stop(); }
  Kept kept(std::size_t shard) const override { return server_->kept(shard); }
  void take_over(Server& kept, const Point& at, const Consistency& consistency) override { server_->take_over(kept, at, consistency); }

 private:
  // Sources: messages of each member, members that leave, links that have drained, functions that are done.
  Order::Event leaving(net::Rank reader) const { return {members_ + reader, 0}; }
  Order::Event draining(net::Rank reader) const { return {2 * members_ + reader, 0}; }
  Order::Event done() const { return {3 * members_, 0}; }
  bool drains(Order::Source source);

  const net::Rank members_;
  const std::unique_ptr<Order> order_;
  const std::shared_ptr<InOrder> in_order_;  // functions that end when this is gone find nothing to go on with
  std::unique_ptr<Server> server_;
};

}  // namespace shoal::table
