// A shard as what another server can make the same shard of (handover.h).
#include <string>

#include "shoal/core/error.h"
#include "shoal/table/packed.h"
#include "shoal/table/shard.h"

namespace shoal::table {

// --- at the giver

template <class T>
void Shard<T>::give(net::Rank to, std::uint64_t number, const std::vector<bool>& silent) {
  giving_.emplace(to, number, silent);
}

template <class T>
void Shard<T>::go_on_giving() {
  if (!giving_) return;
  if (giving_->is_due()) {
    std::deque<Message> pieces;
    Message rest = state(pieces);
    pieces.push_front(std::move(rest));
    auto image = std::make_unique<RowsImage<T>>(rows_);
    for (const Settled& settled : settled_) {
      for (Number row = 0; row < settled.before.size(); ++row) image->keep(static_cast<Number>(settled.before.key(row)), settled.before.row(row));
    }
    giving_->cut(std::move(pieces), std::move(image));
  }
  std::vector<Message> taken = giving_->take_pieces(id_, rows_.full_width() * sizeof(T));
  if (!taken.empty()) send_(giving_->to(), std::move(taken));
}

// What is not rows. batches: appended to, in the order in which they are spoken of.
template <class T>
Message Shard<T>::state(std::deque<Message>& batches) const {
  const auto append = [&batches](const Batch& batch) {
    for (Message part : batch) {
      part.header.kind = Kind::given_batch;
      batches.push_back(std::move(part));
    }
  };
  Packed packed;
  const auto pack = [&](const Batches& of_workers) {
    packed << of_workers.size();
    for (const auto& [worker, batch] : of_workers) {
      packed << worker << batch.size();
      append(batch);
    }
  };
  for (net::Rank rank = 0; rank < readers_.size(); ++rank) packed << giving_->behind(rank);
  packed << name(consistency_) << next_ << met_;
  packed << rules_.all().size();
  for (const auto& [clock, rule] : rules_.all()) packed << static_cast<Key>(clock) << name(rule);
  clocks_.pack(packed);
  packed << first_.met << static_cast<Key>(first_.clock);
  readers_.pack(packed);
  packed << settled_.size();
  for (const Settled& settled : settled_) {
    packed << static_cast<Key>(settled.clock) << static_cast<Key>(settled.until) << settled.met << name(settled.rule);
    pack(settled.batches);
  }
  packed << pending_.size();
  for (const auto& [clock, of_workers] : pending_) {
    packed << static_cast<Key>(clock);
    pack(of_workers);
  }
  for (const Batch& batch : arriving_) {
    packed << batch.size();
    append(batch);
  }
  Message message = packed.message(Kind::given_state, id_);
  message.header.sequence = giving_->number();
  return message;
}

template <class T>
bool Shard<T>::is_idle() const {
  const auto is_question = [](const auto& asked) { return asked.second.second.header.kind != Kind::request; };  // rows are asked for anew elsewhere
  return cuts_.empty() && std::ranges::none_of(waiting_, is_question) && !calls_->is_busy() && !rows_.is_watched() && !giving_;
}

// --- at the receiver

template <class T>
void Shard<T>::expect(net::Rank giver, std::uint64_t number) {
  receiving_.emplace(giver, number, readers_.size());
  send_(giver, alone(Message::of_kind(Kind::more, id_, number)));
}

template <class T>
void Shard<T>::receive(net::Rank from, Message message) {
  const Header header = message.header;
  if (is_written(header.kind)) return receiving_->keep(from, std::move(message));
  if (header.kind == Kind::last || (header.kind == Kind::follow && header.sequence == receiving_->number())) return receiving_->marks(from);
  if (!is_given(header.kind) || from != receiving_->giver()) return;
  const Message more = Message::of_kind(Kind::more, id_, receiving_->number());
  if (header.kind == Kind::given_state) {
    if (header.sequence != receiving_->number()) return;
    receiving_->state(std::move(message));
    return send_(from, std::vector<Message>(Receiving::kUnderWay, more));
  }
  if (receiving_->state().header.kind != Kind::given_state) return;  // of an earlier try by the same giver: pieces come in order, the state first
  if (header.kind == Kind::given_batch) {
    message.header.kind = Kind::update;
    receiving_->batch(std::move(message));
  } else {
    for_each_row(message, [&](Number number, std::span<const T> row) { rows_.put(number, row); });
    if (header.ends == Ends::clock) return begin();
  }
  send_(from, alone(more));
}

template <class T>
void Shard<T>::begin() {
  Receiving received = std::move(*receiving_);
  receiving_.reset();
  undecided_ = false;                               // the giver had what was agreed
  released_.begins(received.number());
  Unpacked packed(received.state().keys());
  for (std::uint64_t& count : had_) count = packed.number();  // some may be on their way here still: each link has its own pace
  unpack(packed, received.batches());
  for (auto& [from, message] : received.behind()) take(from, std::move(message));
  readers_.announce_all();
  release_all();
  if (value_bound(consistency_, clocks_.slowest())) readers_.tell_all();
}

template <class T>
void Shard<T>::unpack(Unpacked& packed, std::deque<Message>& batches) {
  const auto refuse = [&] { return Error(Code::mismatch, "another server gave a shard that is none", "table " + spec_.name, "run the same program on all members"); };
  const auto clock = [&] { return static_cast<Clock>(packed.number()); };
  const auto take_batch = [&](std::uint64_t parts) {
    Batch batch;
    for (; parts > 0; --parts) {
      if (batches.empty()) throw refuse();
      batch.push_back(std::move(batches.front()));
      batches.pop_front();
    }
    return batch;
  };
  const auto take_batches = [&] {
    Batches of_workers;
    for (std::uint64_t left = packed.number(); left > 0; --left) {
      const std::uint64_t worker = packed.number();
      if (worker >= workers_.size()) throw refuse();
      of_workers[static_cast<std::uint32_t>(worker)] = take_batch(packed.number());
    }
    return of_workers;
  };
  consistency_ = consistency_from(packed.text());
  next_ = packed.text();
  met_ = packed.number();
  for (std::uint64_t left = packed.number(); left > 0; --left) {
    const Clock from = clock();
    rules_.set(from, rule_from(packed.text()));
  }
  clocks_.unpack(packed);
  first_.met = packed.number();
  first_.clock = clock();
  readers_.unpack(packed);
  rows_.rises(clocks_.slowest());
  for (std::uint64_t left = packed.number(); left > 0; --left) {
    const Clock of = clock(), until = clock();
    const std::uint64_t met = packed.number();
    const Rule rule = rule_from(packed.text());
    Settled& settled = settled_.emplace_back(Settled{of, until, met, rule, take_batches(), RowMap<T>(rows_.full_width())});
    rows_.keep_in(&settled.before);
    add_up(settled.batches, settled.rule, false);
    rows_.keep_in(nullptr);
  }
  for (std::uint64_t left = packed.number(); left > 0; --left) {
    const Clock of = clock();
    pending_[of] = take_batches();
  }
  for (Batch& batch : arriving_) batch = take_batch(packed.number());
  if (whole_clocks(consistency_)) return;
  for (const auto& [of, of_workers] : pending_) {
    for (const auto& [worker, batch] : of_workers) {
      for (const Message& part : batch) {
        for_each_row(part, [&, by = workers_.rank_of(worker)](Number number, std::span<const T> values) { rows_.overlay(number, values, by); });
      }
    }
  }
}

template void Shard<float>::give(net::Rank, std::uint64_t, const std::vector<bool>&);
template void Shard<double>::give(net::Rank, std::uint64_t, const std::vector<bool>&);
template void Shard<std::int32_t>::give(net::Rank, std::uint64_t, const std::vector<bool>&);
template void Shard<std::int64_t>::give(net::Rank, std::uint64_t, const std::vector<bool>&);
template bool Shard<float>::is_idle() const;
template bool Shard<double>::is_idle() const;
template bool Shard<std::int32_t>::is_idle() const;
template bool Shard<std::int64_t>::is_idle() const;
template void Shard<float>::go_on_giving();
template void Shard<double>::go_on_giving();
template void Shard<std::int32_t>::go_on_giving();
template void Shard<std::int64_t>::go_on_giving();
template void Shard<float>::expect(net::Rank, std::uint64_t);
template void Shard<double>::expect(net::Rank, std::uint64_t);
template void Shard<std::int32_t>::expect(net::Rank, std::uint64_t);
template void Shard<std::int64_t>::expect(net::Rank, std::uint64_t);
template void Shard<float>::receive(net::Rank, Message);
template void Shard<double>::receive(net::Rank, Message);
template void Shard<std::int32_t>::receive(net::Rank, Message);
template void Shard<std::int64_t>::receive(net::Rank, Message);

}  // namespace shoal::table
