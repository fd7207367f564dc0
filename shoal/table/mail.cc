#include "shoal/table/mail.h"

#include <utility>

namespace shoal::table {

enum Lane : std::uint32_t { to_servers, to_readers };

struct Mail::State : std::enable_shared_from_this<State> {
  State(net::Transport& of_transport, std::uint16_t channel, Deliver to)
      : transport(of_transport), operation(net::operation_in(channel, 0)), deliver(std::move(to)), arriving(2 * of_transport.size()) {}

  void read(net::Rank from, Lane lane);
  void read_body(net::Rank from, Lane lane);
  void take(net::Rank from, Lane lane);
  void send(net::Rank to, Message message);
  void refuse(net::Rank from, const std::string& fault);

  net::Transport& transport;
  const std::uint64_t operation;
  Deliver deliver;                  // empty: closed
  std::vector<Message> arriving;    // by rank and lane
  std::atomic<std::size_t> unsent{0};
};

void Mail::State::read(net::Rank from, Lane lane) {
  Message& message = arriving[2 * from + lane];
  transport.receive(from, {operation, lane}, {}, std::as_writable_bytes(std::span(&message.header, 1)),
                    [self = shared_from_this(), from, lane](const net::Failure& why) {
                      if (!why) self->read_body(from, lane);
                    });
}

void Mail::State::read_body(net::Rank from, Lane lane) {
  Message& message = arriving[2 * from + lane];
  if (const std::string fault = fault_of(message.header, lane == to_servers); !fault.empty()) return refuse(from, fault);
  message.body.resize(message.header.length);
  if (message.body.empty()) return take(from, lane);
  transport.receive(from, {operation, lane}, {}, message.body, [self = shared_from_this(), from, lane](const net::Failure& why) {
    if (!why) self->take(from, lane);
  });
}

void Mail::State::take(net::Rank from, Lane lane) {
  if (!deliver) return;
  deliver(from, std::exchange(arriving[2 * from + lane], {}));
  read(from, lane);
}

void Mail::State::refuse(net::Rank from, const std::string& fault) {
  transport.fail(Error(Code::mismatch, "rank " + std::to_string(from) + " sent " + fault, "tables", "run the same program on all members"));
}

void Mail::State::send(net::Rank to, Message message) {
  const auto sent = std::make_shared<const Message>(std::move(message));
  const net::Tag tag{operation, sent->header.kind <= kLastToServer ? to_servers : to_readers};
  transport.send(to, tag, {}, std::as_bytes(std::span(&sent->header, 1)), [sent](const net::Failure&) {});
  if (sent->body.empty()) return;
  transport.send(to, tag, {}, sent->body, [self = shared_from_this(), sent](const net::Failure&) { self->unsent -= sent->body.size(); });
}

Mail::Mail(net::Transport& transport, std::uint16_t channel, Deliver deliver)
    : state_(std::make_shared<State>(transport, channel, std::move(deliver))) {
  for (net::Rank peer = 0; peer < transport.size(); ++peer) {
    if (peer == transport.rank()) continue;
    state_->read(peer, to_servers);
    state_->read(peer, to_readers);
  }
}

Mail::~Mail() {
  state_->deliver = nullptr;
  state_->transport.close(state_->operation, std::make_shared<const Error>(Code::cancelled, "the tables are closing"));
}

void Mail::send(net::Rank to, std::vector<Message> messages) {
  const bool own = to == state_->transport.rank();
  if (!own) {
    for (const Message& message : messages) state_->unsent += message.body.size();
  }
  state_->transport.post([state = state_, to, own, messages = std::move(messages)]() mutable {
    for (Message& message : messages) {
      if (!state->deliver) return;
      own ? state->deliver(to, std::move(message)) : state->send(to, std::move(message));
    }
  });
}

std::size_t Mail::unsent() const { return state_->unsent.load(std::memory_order_relaxed); }
net::Transport& Mail::transport() const { return state_->transport; }

}  // namespace shoal::table
