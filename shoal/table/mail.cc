#include "shoal/table/mail.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

namespace shoal::table {

// A header goes ahead of all bulk bytes, with a short body behind it; a long body goes by credit on a lane of its own. So what is to come is known
// early, and there is credit for the next bodies while one arrives: waiting for it at each message would leave a full link idle half of the time.
enum Lane : std::uint32_t { to_servers, to_readers, bodies };  // + to_servers or to_readers
constexpr net::Priority kUrgent{.cls = net::Class::urgent};
constexpr std::size_t kShortBody = 1024;
constexpr std::size_t kUnderWay = std::size_t{8} << 20;  // bytes of long bodies in one direction, which the receiver has room for

bool is_short(const Header& header) { return header.length <= kShortBody; }

struct Mail::State : std::enable_shared_from_this<State> {
  State(net::Transport& of_transport, std::uint16_t channel, Deliver to, Drained when_drained)
      : transport(of_transport), operation(net::operation_in(channel, 0)), deliver(std::move(to)),
        drained(std::move(when_drained)), incoming(2 * of_transport.size()),
        outgoing(2 * of_transport.size()), unsent(of_transport.size()), failures(of_transport.size()) {}

  struct Arriving {
    Message message;
    bool whole = false;
  };
  struct Incoming {
    Header header;                  // the next one
    std::deque<Arriving> arriving;  // in order; its elements stay where they are
  };
  struct Outgoing {
    std::deque<Message> waiting;
    std::size_t under_way = 0;
  };

  void read(net::Rank from, Lane lane);
  void read_body(net::Rank from, Lane lane);
  void take(net::Rank from, Lane lane);
  void send(net::Rank to, Message message);
  void go_on(net::Rank to, Lane lane);
  void give_up(net::Rank to, Lane lane);
  void send_short(net::Rank to, Lane lane, const Message& message);
  void send_long(net::Rank to, Lane lane, Message message);
  void left(net::Rank to, std::size_t bytes);
  void ended(net::Rank from, const net::Failure& why);
  void refuse(net::Rank from, const std::string& fault);

  net::Transport& transport;
  const std::uint64_t operation;
  Deliver deliver;                  // empty: closed
  const Drained drained;
  std::vector<Incoming> incoming;   // by rank and lane
  std::vector<Outgoing> outgoing;   // by rank and lane
  std::vector<std::atomic<std::size_t>> unsent;  // by rank

  mutable std::mutex mutex;         // guards failures
  std::vector<net::Failure> failures;  // by rank: the first while this is open
};

void Mail::State::read(net::Rank from, Lane lane) {
  Header& header = incoming[2 * from + lane].header;
  transport.receive(from, {operation, lane}, kUrgent, std::as_writable_bytes(std::span(&header, 1)),
                    [self = shared_from_this(), from, lane](const net::Failure& why) {
                      why ? self->ended(from, why) : self->read_body(from, lane);
                    });
}

void Mail::State::read_body(net::Rank from, Lane lane) {
  Incoming& in = incoming[2 * from + lane];
  if (const std::string fault = fault_of(in.header, lane == to_servers); !fault.empty()) return refuse(from, fault);
  Arriving& next = in.arriving.emplace_back();
  next.message.header = in.header;
  next.message.body = Bytes(in.header.length);
  next.whole = next.message.body.empty();
  if (next.whole) {
    take(from, lane);
    return read(from, lane);
  }
  const bool is_long = !is_short(in.header);
  transport.receive(from, {operation, is_long ? lane + bodies : lane}, is_long ? net::Priority{} : kUrgent, next.message.body,
                    [self = shared_from_this(), from, lane, is_long, &next](const net::Failure& why) {
                      if (why) return self->ended(from, why);
                      next.whole = true;
                      self->take(from, lane);
                      if (!is_long) self->read(from, lane);
                    });
  if (is_long) read(from, lane);
}

// In the order in which they were sent.
void Mail::State::take(net::Rank from, Lane lane) {
  std::deque<Arriving>& arriving = incoming[2 * from + lane].arriving;
  while (deliver && !arriving.empty() && arriving.front().whole) {
    Message message = std::move(arriving.front().message);
    arriving.pop_front();
    deliver(from, std::move(message));
  }
}

void Mail::State::left(net::Rank to, std::size_t bytes) {
  if ((unsent[to] -= bytes) == 0 && deliver) drained(to);
}

void Mail::State::ended(net::Rank from, const net::Failure& why) {
  const std::lock_guard lock(mutex);
  if (deliver && !failures[from]) failures[from] = why;
}

void Mail::State::refuse(net::Rank from, const std::string& fault) {
  transport.fail(Error(Code::mismatch, "rank " + std::to_string(from) + " sent " + fault, "tables", "run the same program on all members"));
}

void Mail::State::send(net::Rank to, Message message) {
  const Lane lane = message.header.kind <= kLastToServer ? to_servers : to_readers;
  outgoing[2 * to + lane].waiting.push_back(std::move(message));
  go_on(to, lane);
}

void Mail::State::go_on(net::Rank to, Lane lane) {
  Outgoing& out = outgoing[2 * to + lane];
  while (!out.waiting.empty() && (out.under_way == 0 || out.under_way + out.waiting.front().body.size() <= kUnderWay)) {
    Message message = std::move(out.waiting.front());
    out.waiting.pop_front();
    is_short(message.header) ? send_short(to, lane, message) : send_long(to, lane, std::move(message));
  }
}

// Nothing leaves for that member any more.
void Mail::State::give_up(net::Rank to, Lane lane) {
  for (const Message& message : std::exchange(outgoing[2 * to + lane].waiting, {})) left(to, sizeof(Header) + message.body.size());
}

void Mail::State::send_short(net::Rank to, Lane lane, const Message& message) {
  const Bytes both(sizeof(Header) + message.body.size());
  std::memcpy(both.data(), &message.header, sizeof(Header));
  std::ranges::copy(message.body, both.data() + sizeof(Header));
  transport.send(to, {operation, lane}, kUrgent, both, [self = shared_from_this(), to, both](const net::Failure&) { self->left(to, both.size()); });
}

void Mail::State::send_long(net::Rank to, Lane lane, Message message) {
  const auto sent = std::make_shared<const Message>(std::move(message));
  outgoing[2 * to + lane].under_way += sent->body.size();
  transport.send(to, {operation, lane}, kUrgent, std::as_bytes(std::span(&sent->header, 1)),
                 [self = shared_from_this(), to, sent](const net::Failure&) { self->left(to, sizeof(Header)); });
  transport.send(to, {operation, lane + bodies}, {}, sent->body, [self = shared_from_this(), to, lane, sent](const net::Failure& why) {
    self->left(to, sent->body.size());
    self->outgoing[2 * to + lane].under_way -= sent->body.size();
    why ? self->give_up(to, lane) : self->go_on(to, lane);
  });
}

Mail::Mail(net::Transport& transport, std::uint16_t channel, Deliver deliver, Drained drained)
    : state_(std::make_shared<State>(transport, channel, std::move(deliver), std::move(drained))) {
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
    for (const Message& message : messages) state_->unsent[to] += sizeof(Header) + message.body.size();
  }
  state_->transport.post([state = state_, to, own, messages = std::move(messages)]() mutable {
    for (Message& message : messages) {
      if (!own) {
        state->send(to, std::move(message));
      } else if (state->deliver) {
        state->deliver(to, std::move(message));
      }
    }
  });
}

std::size_t Mail::unsent(net::Rank to) const { return state_->unsent[to].load(std::memory_order_relaxed); }

net::Failure Mail::failure(net::Rank of) const {
  const std::lock_guard lock(state_->mutex);
  return state_->failures[of];
}


}  // namespace shoal::table
