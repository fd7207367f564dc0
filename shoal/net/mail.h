// Messages between the members of a job, in order on each lane of each ordered pair: a header of fixed size and a body of any length.
//
// Message is a value with a `header`, whose bytes are what travels and whose `length` is that of its `body` (core/bytes.h). A kind of mail says
// how many lanes there are, on which one a message goes, and what cannot be a header:
//
//   struct Kind { static constexpr std::uint32_t lanes;  static std::uint32_t lane_of(const Header&);  static std::string fault_of(const Header&, std::uint32_t lane);
//                 static Priority priority_of(std::uint32_t lane);     // of its long bodies; left out: that of bulk
//                 static bool read_only(const Header&); };             // of long bodies: who gets one does not write to it, and does not mind if who
//                                                                      // sent it could: it may lie where it was sent from; left out: none
//
// A header goes ahead of all bulk bytes, with a short body behind it; a long body goes by credit on a lane of its own. So what is to come is known
// early, and there is credit for the next bodies while one arrives: waiting for it at each message would leave a full link idle half of the time.
//
// Threads: the transport's loop, but for what says otherwise. A message that is no message ends the job with a line that names who sent it.
// Lifetime: the transport outlives it; one on each channel of a transport, destroyed on the loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/net/transport.h"

namespace shoal::net {

template <class Message, class Kind>
class Mail {
 public:
  using Header = decltype(Message::header);
  using Deliver = std::function<void(Rank from, Message message)>;
  using Drained = std::function<void(Rank to)>;  // all that was sent there has left
  // name: of who sends these, for errors.
  Mail(Transport& transport, std::uint16_t channel, std::string name, Deliver deliver, Drained drained);
  ~Mail();  // nothing more is delivered, and what has not left stays here
  Mail(const Mail&) = delete;

  // Any thread; messages of one thread arrive in the order of the calls. What a member says to itself goes the same way without a wire.
  void send(Rank to, std::vector<Message> messages);
  std::size_t unsent(Rank to) const;  // bytes of send() that have not left; none to itself. Any thread
  Failure failure(Rank of) const;     // why that member says nothing more, for instance because it left. Any thread

 private:
  static constexpr std::size_t kShortBody = 1024;
  static constexpr std::size_t kUnderWay = std::size_t{8} << 20;  // bytes of long bodies in one direction, which the receiver has room for
  static bool is_short(const Header& header) { return header.length <= kShortBody; }
  static bool is_read_only(const Header& header) {
    if constexpr (requires { Kind::read_only(header); }) return Kind::read_only(header);
    return false;
  }
  static Priority priority_of(std::uint32_t lane) {
    if constexpr (requires { Kind::priority_of(lane); }) return Kind::priority_of(lane);
    return {};
  }

  struct State;
  std::shared_ptr<State> state_;
};

template <class Message, class Kind>
struct Mail<Message, Kind>::State : std::enable_shared_from_this<State> {
  State(Transport& of_transport, std::uint16_t channel, std::string of_name, Deliver to, Drained when_drained)
      : transport(of_transport), operation(operation_in(channel, 0)), name(std::move(of_name)), deliver(std::move(to)),
        drained(std::move(when_drained)), incoming(Kind::lanes * of_transport.size()),
        outgoing(Kind::lanes * of_transport.size()), unsent(of_transport.size()), failures(of_transport.size()) {}

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

  void read(Rank from, std::uint32_t lane);
  void read_body(Rank from, std::uint32_t lane);
  void take(Rank from, std::uint32_t lane);
  void send(Rank to, Message message);
  void go_on(Rank to, std::uint32_t lane);
  void give_up(Rank to, std::uint32_t lane);
  void send_short(Rank to, std::uint32_t lane, const Message& message);
  void send_long(Rank to, std::uint32_t lane, Message message);
  void left(Rank to, std::size_t bytes);
  void ended(Rank from, const Failure& why);
  void refuse(Rank from, const std::string& fault);

  Transport& transport;
  const std::uint64_t operation;
  const std::string name;
  Deliver deliver;                  // empty: closed
  const Drained drained;
  std::vector<Incoming> incoming;   // by rank and lane
  std::vector<Outgoing> outgoing;   // by rank and lane
  std::vector<std::atomic<std::size_t>> unsent;  // by rank

  mutable std::mutex mutex;         // guards failures
  std::vector<Failure> failures;  // by rank: the first while this is open
};

template <class Message, class Kind>
void Mail<Message, Kind>::State::read(Rank from, std::uint32_t lane) {
  Header& header = incoming[Kind::lanes * from + lane].header;
  transport.receive(from, {operation, lane}, kUrgent, std::as_writable_bytes(std::span(&header, 1)),
                    [self = this->shared_from_this(), from, lane](const Failure& why) {
                      why ? self->ended(from, why) : self->read_body(from, lane);
                    });
}

template <class Message, class Kind>
void Mail<Message, Kind>::State::read_body(Rank from, std::uint32_t lane) {
  Incoming& in = incoming[Kind::lanes * from + lane];
  if (const std::string fault = Kind::fault_of(in.header, lane); !fault.empty()) return refuse(from, fault);
  Arriving& next = in.arriving.emplace_back();
  next.message.header = in.header;
  next.whole = in.header.length == 0;
  if (next.whole) {
    take(from, lane);
    return read(from, lane);
  }
  const bool is_long = !is_short(in.header);
  const auto came = [self = this->shared_from_this(), from, lane, is_long, &next](const Failure& why) {
    if (why) return self->ended(from, why);
    next.whole = true;
    self->take(from, lane);
    if (!is_long) self->read(from, lane);
  };
  if (is_long && is_read_only(in.header)) {
    transport.take(from, {operation, lane + Kind::lanes}, priority_of(lane), in.header.length, [came, &next](const Failure& why, Bytes body) {
      if (!why) next.message.body = std::move(body);
      came(why);
    });
  } else {
    next.message.body = Bytes(in.header.length);
    transport.receive(from, {operation, is_long ? lane + Kind::lanes : lane}, is_long ? priority_of(lane) : kUrgent, next.message.body, came);
  }
  if (is_long) read(from, lane);
}

// In the order in which they were sent.
template <class Message, class Kind>
void Mail<Message, Kind>::State::take(Rank from, std::uint32_t lane) {
  std::deque<Arriving>& arriving = incoming[Kind::lanes * from + lane].arriving;
  while (deliver && !arriving.empty() && arriving.front().whole) {
    Message message = std::move(arriving.front().message);
    arriving.pop_front();
    deliver(from, std::move(message));
  }
}

template <class Message, class Kind>
void Mail<Message, Kind>::State::left(Rank to, std::size_t bytes) {
  if ((unsent[to] -= bytes) == 0 && deliver) drained(to);
}

template <class Message, class Kind>
void Mail<Message, Kind>::State::ended(Rank from, const Failure& why) {
  const std::lock_guard lock(mutex);
  if (deliver && !failures[from]) failures[from] = why;
}

template <class Message, class Kind>
void Mail<Message, Kind>::State::refuse(Rank from, const std::string& fault) {
  transport.fail(Error(Code::mismatch, "rank " + std::to_string(from) + " sent " + fault, name, "run the same program on all members"));
}

template <class Message, class Kind>
void Mail<Message, Kind>::State::send(Rank to, Message message) {
  const std::uint32_t lane = Kind::lane_of(message.header);
  outgoing[Kind::lanes * to + lane].waiting.push_back(std::move(message));
  go_on(to, lane);
}

template <class Message, class Kind>
void Mail<Message, Kind>::State::go_on(Rank to, std::uint32_t lane) {
  Outgoing& out = outgoing[Kind::lanes * to + lane];
  while (!out.waiting.empty() && (out.under_way == 0 || out.under_way + out.waiting.front().body.size() <= kUnderWay)) {
    Message message = std::move(out.waiting.front());
    out.waiting.pop_front();
    is_short(message.header) ? send_short(to, lane, message) : send_long(to, lane, std::move(message));
  }
}

// Nothing leaves for that member any more.
template <class Message, class Kind>
void Mail<Message, Kind>::State::give_up(Rank to, std::uint32_t lane) {
  for (const Message& message : std::exchange(outgoing[Kind::lanes * to + lane].waiting, {})) left(to, sizeof(Header) + message.body.size());
}

template <class Message, class Kind>
void Mail<Message, Kind>::State::send_short(Rank to, std::uint32_t lane, const Message& message) {
  const Bytes both(sizeof(Header) + message.body.size());
  std::memcpy(both.data(), &message.header, sizeof(Header));
  std::ranges::copy(message.body, both.data() + sizeof(Header));
  transport.send(to, {operation, lane}, kUrgent, both, [self = this->shared_from_this(), to, both](const Failure&) { self->left(to, both.size()); });
}

template <class Message, class Kind>
void Mail<Message, Kind>::State::send_long(Rank to, std::uint32_t lane, Message message) {
  const auto sent = std::make_shared<const Message>(std::move(message));
  outgoing[Kind::lanes * to + lane].under_way += sent->body.size();
  transport.send(to, {operation, lane}, kUrgent, std::as_bytes(std::span(&sent->header, 1)),
                 [self = this->shared_from_this(), to, sent](const Failure&) { self->left(to, sizeof(Header)); });
  transport.give(to, {operation, lane + Kind::lanes}, priority_of(lane), sent->body, [self = this->shared_from_this(), to, lane, sent](const Failure& why) {
    self->left(to, sent->body.size());
    self->outgoing[Kind::lanes * to + lane].under_way -= sent->body.size();
    why ? self->give_up(to, lane) : self->go_on(to, lane);
  });
}

template <class Message, class Kind>
Mail<Message, Kind>::Mail(Transport& transport, std::uint16_t channel, std::string name, Deliver deliver, Drained drained)
    : state_(std::make_shared<State>(transport, channel, std::move(name), std::move(deliver), std::move(drained))) {
  for (Rank peer = 0; peer < transport.size(); ++peer) {
    if (peer == transport.rank()) continue;
    for (std::uint32_t lane = 0; lane < Kind::lanes; ++lane) state_->read(peer, lane);
  }
}

template <class Message, class Kind>
Mail<Message, Kind>::~Mail() {
  state_->deliver = nullptr;
  state_->transport.close(state_->operation, std::make_shared<const Error>(Code::cancelled, "the " + state_->name + " are closing"));
}

template <class Message, class Kind>
void Mail<Message, Kind>::send(Rank to, std::vector<Message> messages) {
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

template <class Message, class Kind>
std::size_t Mail<Message, Kind>::unsent(Rank to) const { return state_->unsent[to].load(std::memory_order_relaxed); }

template <class Message, class Kind>
Failure Mail<Message, Kind>::failure(Rank of) const {
  const std::lock_guard lock(state_->mutex);
  return state_->failures[of];
}

}  // namespace shoal::net
