#include "shoal/replica/replica.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/event.h"
#include "shoal/core/text.h"
#include "shoal/core/time.h"
#include "shoal/net/call.h"

namespace shoal::replica {
namespace {

template <class T>
std::string description_of(const Options& options, const factor::Overlay& overlay) {
  std::string text = options.name + ": " + std::to_string(options.rows) + " rows of " + std::to_string(options.width) + " numbers of " +
                     std::to_string(sizeof(T)) + " bytes, staleness " + std::to_string(options.staleness) + ", over";
  for (net::Rank rank = 0; rank < overlay.size(); ++rank) {
    text += " ";
    for (const net::Rank to : overlay.targets(rank)) text += std::to_string(to) + ",";
    text.back() = ';';
  }
  return text;
}

}  // namespace

template <class T>
void Replica<T>::Box::deliver(Message message) {
  {
    const std::lock_guard lock(mutex);
    arrived.push_back(std::move(message));
  }
  this->arrivals_.fetch_add(1, std::memory_order_release);
}

template <class T>
bool Replica<T>::Box::empty() {
  const std::lock_guard lock(mutex);
  return arrived.empty();
}

template <class T>
Replica<T>::Replica(net::Transport& transport, const Options& options)
    : options_(options), transport_(transport), values_(options.rows * options.width), settled_(values_.size()), unsettled_(options.rows),
      origins_(transport.size()), clocks_(transport.size()), box_(std::make_shared<Box>()),
      waiting_(transport, options.patience, [this] { return failure(); }) {
  if (transport.on_peer_lost() == net::OnPeerLost::shrink) {
    throw Error(Code::invalid_argument, "replicas do not go on without lost members: one of them may have been a relay", "replica " + options.name,
                "run with --on-peer-lost fail, or share rows of a table");
  }
  const factor::Overlay overlay = options.overlay ? *options.overlay : factor::Overlay::full(transport.size());
  // What is handed over owns all that it refers to: the loop may come to it when this member has given up.
  const bool begun = net::call(transport, [&transport, box = box_, channel = options.channel, overlay, text = description_of<T>(options, overlay)] {
    const std::weak_ptr<Box> to = box;
    const auto deliver = [to](Message message) {
      if (const auto alive = to.lock()) alive->deliver(std::move(message));
    };
    box->broadcast = std::make_unique<Broadcast>(transport, channel, overlay, text, deliver);
  });
  if (!begun) throw Error(Code::cancelled, "the transport has ended", "replica " + options.name);
}

template <class T>
Replica<T>::~Replica() {
  note_traffic();
  box_->broadcast->leave();
  net::wait_for(transport_, [&] { return transport_.failure() || !box_->broadcast->unsent(); }, net::kLoopAnswers);
  net::call(transport_, [box = box_] { box->broadcast.reset(); });
}

// What `shoal explain` tells of it.
template <class T>
void Replica<T>::note_traffic() const {
  if (sent_ == 0) return;
  const std::string line = "replica " + options_.name + ": " + std::to_string(sent_) + " updates of " +
                           show_size(static_cast<double>(bytes_) / static_cast<double>(sent_)) + " to each other member, waited " +
                           show_seconds(Seconds(waited_).count()) + " for theirs";
  const Instant now = steady_now();
  Events::local().record({.kind = EventKind::note, .begin = now, .end = now, .name = Events::local().intern(line)});
}

// Of a member that did not say that it leaves, or left while this one waits for more of it.
template <class T>
net::Failure Replica<T>::failure() const {
  for (net::Rank rank = 0; rank < transport_.size(); ++rank) {
    if (rank == transport_.rank()) continue;
    if (origins_[rank].left)
      return std::make_shared<const Error>(Code::peer_lost, "rank " + std::to_string(rank) + " has left",
                                           "replica " + options_.name);
    if (net::Failure why = box_->broadcast->failure(rank)) return why;
  }
  return nullptr;
}

// What arrives is taken in by this thread, and not by the condition that it waits for: that is looked at by who runs the loop, which others need.
template <class T>
template <class Ready>
void Replica<T>::wait(const Ready& ready, const char* what) {
  while (!ready()) waited_ += waiting_.until([this] { return !box_->empty(); }, *box_, what, options_.name);
}

template <class T>
void Replica<T>::send(Kind kind, Bytes body, bool ends_clock) {
  box_->broadcast->send({{.kind = kind, .ends_clock = ends_clock, .clock = clock_}, std::move(body)});
}

// The last of a clock goes with the clock's end.
template <class T>
void Replica<T>::send_open(bool ends_clock) {
  if (open_ || ends_clock) send(Kind::update, open_.value_or(Bytes()), ends_clock);
  open_.reset();
}

// --- what a worker does

template <class T>
void Replica<T>::read(std::span<const Key> keys, std::span<T> values) const {
  for (std::size_t i = 0; i < keys.size(); ++i) std::ranges::copy(row(keys[i]), values.begin() + static_cast<std::ptrdiff_t>(i * options_.width));
}

template <class T>
void Replica<T>::add(Outer outer) {
  if (outer.width() != options_.width || (!outer.rows().empty() && outer.rows().back() >= options_.rows)) {
    throw Error(Code::invalid_argument,
                "factors of another matrix: rows up to " + std::to_string(outer.rows().empty() ? 0 : outer.rows().back()) +
                    " of " + std::to_string(outer.width()) + " numbers",
                "replica " + options_.name);
  }
  const Bytes body = outer.write();
  if (body.size() > kLongestBody) {
    throw Error(Code::invalid_argument, "factors of " + show_size(static_cast<double>(body.size())) + " in one update",
                "replica " + options_.name, "take a smaller batch");
  }
  send_open(false);
  ++sent_;
  bytes_ += body.size();
  open_ = body;
  auto& updates = origins_[transport_.rank()].updates;
  updates.push_back({clock_, std::move(outer)});
  show(updates.back());
}

template <class T>
void Replica<T>::tick() {
  end_clock();
  wait([this] { return may_go_on(); }, "the slowest member's update of replica ");
}

template <class T>
void Replica<T>::end_clock() {
  send_open(true);
  clocks_.complete(transport_.rank(), clock_++);
}

template <class T>
bool Replica<T>::may_go_on() {
  take_in();
  return clocks_.slowest() >= clock_ - static_cast<Clock>(options_.staleness);
}

template <class T>
void Replica<T>::barrier() {
  const std::uint64_t number = arrive();
  wait([&] { return have_met(number); }, "all members at a barrier of replica ");
}

template <class T>
std::uint64_t Replica<T>::arrive() {
  send_open(false);
  send(Kind::barrier, {}, false);
  come_to_barrier(transport_.rank(), clock_);
  return met_ + 1;
}

template <class T>
bool Replica<T>::have_met(std::uint64_t number) {
  take_in();
  return met_ >= number;
}

template <class T>
void Replica<T>::set(std::span<const Key> keys, std::span<const T> values) {
  const Bytes body(keys.size_bytes() + values.size_bytes());
  if (!keys.empty()) {
    std::memcpy(body.data(), keys.data(), keys.size_bytes());
    std::memcpy(body.data() + keys.size_bytes(), values.data(), values.size_bytes());
  }
  Message own{{.kind = Kind::set, .clock = clock_}, body};
  take(own);
  box_->broadcast->send(std::move(own));
}

template <class T>
void Replica<T>::scale(double factor, Key end) {
  for (T& value : std::span(values_).first(end * options_.width)) value = static_cast<T>(value * factor);
  std::ranges::copy(std::span(values_).first(end * options_.width), settled_.begin());
}

// --- what arrives

template <class T>
void Replica<T>::take_in() {
  {
    const std::lock_guard lock(box_->mutex);
    for (Message& message : box_->arrived) origins_[message.header.origin].arrived.push_back(std::move(message));
    box_->arrived.clear();
  }
  for (Origin& origin : origins_) {
    for (; !origin.arrived.empty() && !origin.at_barrier; origin.arrived.pop_front()) take(origin.arrived.front());
  }
  if (clocks_.rise(0)) settle_below(clocks_.slowest());
  if (meet()) return;  // what others have sent since is not looked at before this member goes on
  if (options_.staleness == 0) return;  // bulk synchronous: whole clocks alone
  for (Origin& origin : origins_) {
    for (Update& update : origin.updates) {
      if (!update.shown) show(update);
    }
  }
}

template <class T>
void Replica<T>::take(const Message& message) {
  const Header& header = message.header;
  const std::span<const std::byte> body(message.body.data(), message.body.size());
  const std::size_t row_bytes = options_.width * sizeof(T);
  switch (header.kind) {
    case Kind::update:
      if (!body.empty()) origins_[header.origin].updates.push_back({header.clock, Outer::read(body, options_.width, options_.rows)});
      if (header.ends_clock) clocks_.complete(header.origin, header.clock);
      return;
    case Kind::barrier: return come_to_barrier(header.origin, header.clock);
    case Kind::leaving:
      origins_[header.origin].left = true;
      return;
    case Kind::set: {
      const std::size_t count = body.size() / (sizeof(Key) + row_bytes);
      if (body.size() % (sizeof(Key) + row_bytes) != 0) throw Error(Code::mismatch, "rows of unequal length", "replica " + options_.name);
      for (std::size_t i = 0; i < count; ++i) {
        Key key;
        std::memcpy(&key, &body[i * sizeof(Key)], sizeof(Key));
        if (key >= options_.rows)
          throw Error(Code::mismatch, "row " + std::to_string(key) + " of " + std::to_string(options_.rows),
                      "replica " + options_.name);
        for (std::vector<T>* rows : {&values_, &settled_})
          std::memcpy(row_of(*rows, key).data(), &body[count * sizeof(Key) + i * row_bytes], row_bytes);
      }
      return;
    }
    default: return;
  }
}

template <class T>
void Replica<T>::come_to_barrier(net::Rank origin, Clock clock) {
  clocks_.arrive(origin, clock);
  origins_[origin].at_barrier = true;
}

// If all have come: what each added before is settled, of whole clocks and of the last.
template <class T>
bool Replica<T>::meet() {
  if (!std::ranges::all_of(origins_, &Origin::at_barrier)) return false;
  settle_below(table::kLastClock);
  for (Origin& origin : origins_) origin.at_barrier = false;
  clocks_.meet();
  clock_ = clocks_.slowest();
  ++met_;
  return true;
}

// All updates with timestamps below `clock`, in the order of (clock, origin).
template <class T>
void Replica<T>::settle_below(Clock clock) {
  while (true) {
    Origin* first = nullptr;
    for (Origin& origin : origins_) {
      if (origin.updates.empty() || origin.updates.front().clock >= clock) continue;
      if (!first || origin.updates.front().clock < first->updates.front().clock) first = &origin;
    }
    if (!first) return;
    settle(first->updates.front());
    first->updates.pop_front();
  }
}

template <class T>
void Replica<T>::settle(const Update& update) {
  const auto rows = update.outer.rows();
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const std::span<T> settled = row_of(settled_, rows[at]), shown = row_of(values_, rows[at]);
    update.outer.add_to(at, settled);
    if (update.shown) --unsettled_[rows[at]];
    if (unsettled_[rows[at]] == 0) {
      std::ranges::copy(settled, shown.begin());
    } else if (!update.shown) {
      update.outer.add_to(at, shown);
    }
  }
}

template <class T>
void Replica<T>::show(Update& update) {
  const auto rows = update.outer.rows();
  for (std::size_t at = 0; at < rows.size(); ++at) {
    update.outer.add_to(at, row_of(values_, rows[at]));
    ++unsettled_[rows[at]];
  }
  update.shown = true;
}

template class Replica<float>;
template class Replica<double>;

}  // namespace shoal::replica
