#include "shoal/table/shard.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::table {

template <class T>
Shard<T>::Shard(const Spec& spec, const Workers& workers, net::Rank members, Send send)
    : spec_(spec), workers_(workers), members_(members), send_(std::move(send)), id_(id_of(spec)), clocks_(workers.size()),
      received_(members), included_(members), settled_(spec.width), words_((members + 63) / 64), live_(spec.width) {}

template <class T>
void Shard<T>::take(net::Rank from, Message message) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " sent " + what, "table " + spec_.name, "run the same program on all members");
  };
  const Header& header = message.header;
  if (const std::string fault = fault_of(message, spec_.width * sizeof(T)); !fault.empty()) refuse(fault);
  if (header.kind == Kind::update || header.kind == Kind::flush) {
    if (header.worker >= workers_.size() || workers_.rank_of(header.worker) != from) refuse("an update of worker " + std::to_string(header.worker));
  }
  switch (header.kind) {
    case Kind::update: return update(from, std::move(message));
    case Kind::request: return request(from, message);
    case Kind::assign: return assign(from, message);
    case Kind::flush: return flush(message);
    default: refuse("a message of kind " + std::to_string(static_cast<int>(header.kind)));
  }
}

// --- updates

template <class T>
void Shard<T>::update(net::Rank from, Message message) {
  const Header header = message.header;
  Worker& worker = clocks_[header.worker];
  worker.arriving.push_back(std::move(message));
  if (header.ends == Ends::nothing) return;
  received_[from] = header.sequence;
  std::vector<Message> batch = std::exchange(worker.arriving, {});
  if (!clocked(spec_.consistency)) {
    for (const Message& part : batch) add_now(from, part);
  } else {
    if (!whole_clocks(spec_.consistency)) {
      for (const Message& part : batch) overlay(from, part);
    }
    auto& pending = pending_[header.clock][header.worker];
    std::move(batch.begin(), batch.end(), std::back_inserter(pending));
  }
  if (!whole_clocks(spec_.consistency)) included_[from] = header.sequence;
  if (header.ends == Ends::clock) worker.completed = header.clock + 1;
  advance(from);
}

// The worker that was slowest may have completed a clock.
template <class T>
void Shard<T>::advance(net::Rank from) {
  const auto slowest = std::min_element(clocks_.begin(), clocks_.end(), [](const Worker& a, const Worker& b) { return a.completed < b.completed; });
  const bool rose = slowest->completed > min_;
  if (rose) {
    min_ = slowest->completed;
    settle_through(min_);
    answer_waiting();
  }
  if (pushes(spec_.consistency) && (rose || !clocked(spec_.consistency))) push();
  if (!rose) return announce(from);
  for (const net::Rank rank : workers_.ranks()) announce(rank);
}

template <class T>
typename Shard<T>::Number Shard<T>::row(Key key, Number near) {
  const Number number = settled_.insert(key, near);
  if (number < changed_by_.size()) return number;
  changed_by_.push_back(kNobody);
  live_number_.push_back(RowMap<T>::kNone);
  subscribers_.resize(subscribers_.size() + words_);
  if (!spec_.initial.zero()) {
    const std::span<T> values = settled_.row(number);
    for (std::size_t column = 0; column < values.size(); ++column) values[column] = static_cast<T>(spec_.initial.value(key, column));
  }
  return number;
}

template <class T>
void Shard<T>::add_now(net::Rank from, const Message& message) {
  const auto values = message.values<T>();
  Number number = RowMap<T>::kNone;
  for (std::size_t i = 0; i < message.keys().size(); ++i) {
    number = row(message.keys()[i], number + 1);
    add<T>(settled_.row(number), values.subspan(i * spec_.width, spec_.width));
    changed(number, from);
  }
}

template <class T>
void Shard<T>::overlay(net::Rank from, const Message& message) {
  const auto values = message.values<T>();
  Number number = RowMap<T>::kNone;
  for (std::size_t i = 0; i < message.keys().size(); ++i) {
    number = row(message.keys()[i], number + 1);
    Number& later = live_number_[number];
    if (later == RowMap<T>::kNone) {
      later = live_.insert(message.keys()[i]);
      later_.push_back(0);
    }
    if (later_[later]++ == 0) set<T>(live_.row(later), settled_.row(number));
    add<T>(live_.row(later), values.subspan(i * spec_.width, spec_.width));
    changed(number, from);
  }
}

template <class T>
void Shard<T>::settle(net::Rank from, const Message& message) {
  const auto values = message.values<T>();
  Number number = RowMap<T>::kNone;
  for (std::size_t i = 0; i < message.keys().size(); ++i) {
    number = row(message.keys()[i], number + 1);
    add<T>(settled_.row(number), values.subspan(i * spec_.width, spec_.width));
    if (whole_clocks(spec_.consistency)) {
      changed(number, from);
    } else {
      --later_[live_number_[number]];
    }
  }
}

template <class T>
void Shard<T>::settle_through(Clock clock) {
  for (auto due = pending_.begin(); due != pending_.end() && due->first < clock; due = pending_.erase(due)) {
    for (const auto& [worker, batch] : due->second) {
      for (const Message& part : batch) settle(workers_.rank_of(worker), part);
    }
  }
}

template <class T>
void Shard<T>::changed(Number number, net::Rank by) {
  const auto readers = std::span(subscribers_).subspan(number * words_, words_);
  if (std::ranges::all_of(readers, [](std::uint64_t ranks) { return ranks == 0; })) return;  // who reads it first is sent all of it
  net::Rank& before = changed_by_[number];
  if (before == kNobody) changed_.push_back(number);
  before = before == kNobody || before == by ? by : kSeveral;
}

template <class T>
std::span<const T> Shard<T>::visible(Number number) const {
  const Number later = live_number_[number];
  return later == RowMap<T>::kNone || later_[later] == 0 ? settled_.row(number) : live_.row(later);
}

// --- readers

template <class T>
void Shard<T>::request(net::Rank from, const Message& message) {
  if (message.header.clock <= min_) return answer(from, message);
  waiting_.emplace(message.header.clock, std::pair(from, message));
}

template <class T>
void Shard<T>::answer_waiting() {
  for (auto due = waiting_.begin(); due != waiting_.end() && due->first <= min_; due = waiting_.erase(due)) {
    answer(due->second.first, due->second.second);
  }
}

template <class T>
void Shard<T>::answer(net::Rank to, const Message& request) {
  std::vector<Number> numbers;
  numbers.reserve(request.keys().size());
  Number number = RowMap<T>::kNone;
  for (const Key key : request.keys()) {
    number = row(key, number + 1);
    numbers.push_back(number);
    if (pushes(spec_.consistency)) subscribers_[number * words_ + to / 64] |= std::uint64_t{1} << (to % 64);
  }
  send_(to, rows_for(to, numbers));
}

template <class T>
std::vector<Message> Shard<T>::rows_for(net::Rank to, std::span<const Number> numbers) const {
  std::vector<Message> messages;
  const std::size_t most = rows_a_message(spec_.width * sizeof(T));
  for (std::size_t begin = 0; begin < numbers.size(); begin += most) {
    const auto some = numbers.subspan(begin, std::min(most, numbers.size() - begin));
    Message message = Message::of_rows(Kind::rows, id_, some.size(), spec_.width * sizeof(T));
    message.header.clock = min_;
    message.header.sequence = included_[to];
    Key* key = message.key_places();
    T* values = message.value_places<T>();
    for (const Number number : some) {
      *key++ = settled_.key(number);
      set<T>({values, spec_.width}, visible(number));
      values += spec_.width;
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

template <class T>
void Shard<T>::push() {
  std::vector<std::vector<Number>> for_rank(members_);
  for (const Number number : changed_) {
    for (net::Rank rank = 0; rank < members_; ++rank) {
      if (subscribed(number, rank) && changed_by_[number] != rank) for_rank[rank].push_back(number);
    }
    changed_by_[number] = kNobody;
  }
  changed_.clear();
  for (net::Rank rank = 0; rank < members_; ++rank) {
    if (!for_rank[rank].empty()) send_(rank, rows_for(rank, for_rank[rank]));
  }
}

template <class T>
void Shard<T>::announce(net::Rank to, Kind kind) {
  Message message;
  message.header.kind = kind;
  message.header.table = id_;
  message.header.clock = min_;
  message.header.sequence = included_[to];
  std::vector<Message> messages;
  messages.push_back(std::move(message));
  send_(to, std::move(messages));
}

// --- out of time

template <class T>
void Shard<T>::assign(net::Rank from, const Message& message) {
  const auto values = message.values<T>();
  for (std::size_t i = 0; i < message.keys().size(); ++i) {
    const Key key = message.keys()[i];
    const Number number = row(key, 0);
    std::ranges::copy(values.subspan(i * spec_.width, spec_.width), settled_.row(number).begin());
    changed(number, kSeveral);
    const Number later = live_number_[number];
    if (later == RowMap<T>::kNone || later_[later] == 0) continue;
    set<T>(live_.row(later), settled_.row(number));
    for (const auto& [clock, workers] : pending_) {
      for (const auto& [worker, batch] : workers) {
        for (const Message& part : batch) {
          for (std::size_t j = 0; j < part.keys().size(); ++j) {
            if (part.keys()[j] == key) add<T>(live_.row(later), part.values<T>().subspan(j * spec_.width, spec_.width));
          }
        }
      }
    }
  }
  if (message.header.ends == Ends::nothing) return;
  if (pushes(spec_.consistency)) push();
  announce(from, Kind::assigned);
}

template <class T>
void Shard<T>::flush(const Message& message) {
  clocks_[message.header.worker].flushed_at = message.header.clock;
  if (!std::all_of(clocks_.begin(), clocks_.end(), [](const Worker& worker) { return worker.flushed_at.has_value(); })) return;
  for (Worker& worker : clocks_) min_ = std::max(min_, *std::exchange(worker.flushed_at, std::nullopt));
  for (Worker& worker : clocks_) worker.completed = min_;
  settle_through(std::numeric_limits<Clock>::max());
  included_ = received_;
  answer_waiting();
  if (pushes(spec_.consistency)) push();
  for (const net::Rank rank : workers_.ranks()) announce(rank, Kind::flushed);
}

template class Shard<float>;
template class Shard<double>;
template class Shard<std::int32_t>;
template class Shard<std::int64_t>;

std::unique_ptr<Server> make_shard(const Spec& spec, const Workers& workers, net::Rank members, Send send) {
  switch (spec.type) {
    case DType::f32: return std::make_unique<Shard<float>>(spec, workers, members, std::move(send));
    case DType::f64: return std::make_unique<Shard<double>>(spec, workers, members, std::move(send));
    case DType::i32: return std::make_unique<Shard<std::int32_t>>(spec, workers, members, std::move(send));
    default: return std::make_unique<Shard<std::int64_t>>(spec, workers, members, std::move(send));
  }
}

}  // namespace shoal::table
