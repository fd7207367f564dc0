#include "shoal/table/readers.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace shoal::table {

template <class T>
Readers<T>::Readers(const Of& of, net::Rank members, Send send, Idle idle, Now now)
    : of_(of), id_(id_of(of.spec)), send_(std::move(send)), idle_(std::move(idle)), now_(std::move(now)), readers_(members) {
  if (revises(of.spec.rule)) shown_.emplace(members, of.workers);
}

template <class T>
void Readers<T>::admit(net::Rank reader) {
  readers_[reader].admitted = true;
  if (of_.workers.first_of(reader) < of_.workers.size()) of_.released.joins(reader);
}

template <class T>
void Readers<T>::lose(net::Rank reader) {
  readers_[reader].lost = true;
  readers_[reader].admitted = false;
}

template <class T>
void Readers<T>::closes(const Header& batch, net::Rank of, bool included) {
  readers_[of].received = batch.sequence;
  if (included) readers_[of].included = batch.sequence;
  if (shown_) shown_->hears(batch.worker, batch.heard);
}

template <class T>
void Readers<T>::include_all() {
  for (Reader& reader : readers_) reader.included = reader.received;
}

template <class T>
void Readers<T>::answer(net::Rank to, const Message& request) {
  readers_[to].unsubscribed = std::max(readers_[to].unsubscribed, request.header.sequence);
  std::vector<Number> numbers;
  numbers.reserve(request.keys().size());
  for (const Key key : request.keys()) {
    numbers.push_back(of_.rows.number_of(key, numbers.empty() ? 0 : numbers.back() + 1));
    if (pushes(of_.consistency)) of_.rows.subscribe(numbers.back(), to);
  }
  send_(to, rows_to(to, header_to(to), numbers));
}

template <class T>
void Readers<T>::unsubscribe(net::Rank reader, const Message& message) {
  readers_[reader].unsubscribed = std::max(readers_[reader].unsubscribed, message.header.sequence);
  std::vector<Number> numbers;
  for (const Key key : message.keys()) numbers.push_back(of_.rows.number_of(key, numbers.empty() ? 0 : numbers.back() + 1));
  of_.rows.unsubscribe(numbers, reader);
}

template <class T>
Header Readers<T>::header_to(net::Rank reader) const {
  Header header;
  header.table = id_;
  header.clock = of_.clocks.slowest();
  header.sequence = readers_[reader].included;
  header.heard = readers_[reader].unsubscribed;
  return header;
}

// A rule that revises steps changes whole rows: what is told of them goes this way.
template <class T>
std::vector<Message> Readers<T>::rows_to(net::Rank reader, const Header& header, std::span<const Number> numbers) {
  std::vector<Message> messages = of_.rows.messages(header, numbers);
  if (shown_) {
    std::size_t at = 0;
    for (const Message& message : messages) {
      shown_->begins_message(reader);
      for (const Number number : numbers.subspan(at, message.header.count)) shown_->sends(reader, number, of_.rows.sums(number));
      at += message.header.count;
    }
  }
  return messages;
}

template <class T>
void Readers<T>::tell(net::Rank reader) {
  if (readers_[reader].lost) return;
  if ((readers_[reader].untold = !idle_(reader))) return;
  push(reader);
  announce(reader);
  tell_clocks(reader);                              // behind what confirms the reader's own batches: they are clocks of its workers, too
  stamp(reader);
}

template <class T>
void Readers<T>::drained(net::Rank reader) {
  readers_[reader].pace.drained(now_());
  if (readers_[reader].untold || readers_[reader].promised != kLastClock) tell(reader);
}

template <class T>
void Readers<T>::push(net::Rank reader, bool all) {
  Reader& to = readers_[reader];
  const std::size_t room = all || !divides_rounds(of_.consistency) ? std::numeric_limits<std::size_t>::max() : to.pace.room();
  const Clock next = of_.clocks.furthest(of_.workers.first_of(reader), of_.workers.count_of(reader)) + 1;
  const auto [whole, some] = of_.rows.take_changes(reader, room, needed_age(of_.consistency, next));
  if ((to.promised = of_.rows.complete(reader)) != kLastClock) of_.rows.weigh();
  const Header header = header_to(reader);
  std::vector<Message> messages = rows_to(reader, header, whole);
  std::ranges::move(of_.rows.messages(header, some), std::back_inserter(messages));
  std::size_t bytes = 0;
  for (const Message& message : messages) bytes += message.body.size();
  to.pace.sends(now_(), bytes);
  if (!messages.empty()) send_(reader, std::move(messages));
}

template <class T>
void Readers<T>::tell_clocks(net::Rank reader) {
  if (!tells_each_clock(of_.consistency) || !readers_[reader].admitted) return;
  const std::vector<Clock> each = of_.clocks.each();
  Message message = Message::of_rows(Kind::clocks, id_, each.size(), 0);
  std::ranges::copy(each, message.key_places());
  send_(reader, alone(std::move(message)));
}

template <class T>
void Readers<T>::stamp(net::Rank reader) {
  const std::uint64_t number = of_.released.stamp(reader);
  if (number == 0) return;
  Message message = Message::of_kind(Kind::stamp, id_, number);
  message.header.heard = of_.released.handover();
  send_(reader, alone(std::move(message)));
}

template <class T>
void Readers<T>::end_barrier() {
  for (const net::Rank rank : of_.workers.ranks()) {
    if (readers_[rank].lost) continue;
    readers_[rank].untold = false;
    push(rank, true);
    tell_clocks(rank);                              // ahead of what ends the wait: until then these say that nobody need be waited for
    announce(rank, Kind::flushed);
    stamp(rank);
  }
}

template <class T>
void Readers<T>::announce(net::Rank to, Kind kind) {
  if (!readers_[to].admitted) return;               // it has nothing to be told of, yet
  Message message = Message::of_kind(kind, id_);
  message.header.clock = readers_[to].untold ? kNever : std::min(of_.clocks.slowest(), readers_[to].promised);  // rows of this age have not left
  message.header.sequence = readers_[to].included;
  message.header.count = readers_[to].dropped;
  message.header.heard = of_.met;
  send_(to, alone(std::move(message)));
}

template <class T>
void Readers<T>::pack(Packed& packed) const {
  for (const Reader& reader : readers_) packed << reader.admitted << reader.received << reader.included << reader.dropped;
}

template <class T>
void Readers<T>::unpack(Unpacked& packed) {
  for (net::Rank rank = 0; rank < size(); ++rank) {
    if (packed.number() != 0) admit(rank);
    readers_[rank].received = packed.number();
    readers_[rank].included = packed.number();
    readers_[rank].dropped = static_cast<std::uint32_t>(packed.number());
  }
}

template class Readers<float>;
template class Readers<double>;
template class Readers<std::int32_t>;
template class Readers<std::int64_t>;

}  // namespace shoal::table
