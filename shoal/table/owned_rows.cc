#include "shoal/table/owned_rows.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "shoal/core/helping.h"
#include "shoal/table/image.h"
#include "shoal/table/magnitudes.h"

namespace shoal::table {
namespace {

void set_told(Message& message, const Header& header) {
  message.header.clock = header.clock;
  message.header.sequence = header.sequence;
  message.header.heard = header.heard;
}

}  // namespace

template <class T>
OwnedRows<T>::OwnedRows(const Spec& spec, net::Rank readers, const std::shared_ptr<ColdFile>& cold, std::shared_ptr<const BytesPool> bodies)
    : initial_(spec.initial), columns_(spec.width), row_bytes_(encoded_bytes(spec.encoding, spec.width, sizeof(T))),
      divides_(spec.encoding == Encoding::none && bytes(Blocks{1}) < bytes(kWhole)), bodies_(std::move(bodies)), words_((readers + 63) / 64), settled_(spec.width, cold),
      state_(state_width(spec.rule, spec.width), cold), live_(spec.width), untold_(readers) {
  if (spec.encoding != Encoding::none) rounded_.emplace(spec.encoding, spec.width);
}

template <class T>
typename OwnedRows<T>::Number OwnedRows<T>::number_of(Key key, Number near) {
  const Number number = settled_.insert(key, near);
  if (number < live_number_.size()) return number;
  live_number_.push_back(RowMap<T>::kNone);
  if (any_subscriber_) make_room_for_subscribers();
  initialise(number);
  return number;
}

template <class T>
void OwnedRows<T>::initialise(Number number) {
  if (initial_.zero()) return;
  const std::span<T> values = settled_.row(number);
  for (std::size_t column = 0; column < values.size(); ++column) values[column] = static_cast<T>(initial_.value(key(number), column));
}

template <class T>
std::span<const T> OwnedRows<T>::visible(Number number) const {
  const Number later = live_number_[number];
  return later == RowMap<T>::kNone || later_[later] == 0 ? settled_.row(number) : live_.row(later);
}

template <class T>
std::span<const T> OwnedRows<T>::sums(Number number) {
  return state_.row(state_.insert(key(number))).first(settled_.width());
}

template <class T>
std::vector<Message> OwnedRows<T>::messages(const Header& header, std::span<const Number> numbers) {
  std::vector<Message> messages;
  const std::size_t width = settled_.width(), most = rows_a_message(width * sizeof(T));
  for (std::size_t begin = 0; begin < numbers.size(); begin += most) {
    const auto some = numbers.subspan(begin, std::min(most, numbers.size() - begin));
    Message message = Message::of_rows(Kind::rows, header.table, some.size(), width * sizeof(T), rounded_ ? *BytesPool::of_process() : *bodies_);
    set_told(message, header);
    Key* key = message.key_places();
    T* values = message.value_places<T>();
    for (const Number number : some) {
      *key++ = this->key(number);
      set<T>({values, width}, rounded_ ? rounded_->show(number, visible(number)) : visible(number));
      values += width;
    }
    messages.push_back(rounded_ ? encoded<T>(rounded_->encoding(), std::move(message), width, *bodies_) : std::move(message));
  }
  return messages;
}

template <class T>
std::vector<Message> OwnedRows<T>::messages(const Header& header, std::span<const Change> changes) {
  std::vector<Message> messages;
  while (!changes.empty()) {
    std::size_t count = 0, size = 0;
    for (; count < changes.size(); ++count) {
      const std::size_t more = bytes(changes[count].blocks);
      if (count > 0 && size + more > kMessageBytes) break;
      size += more;
    }
    Message message = Message::of_changes(header.table, count, size, *bodies_);
    set_told(message, header);
    Key* key = message.key_places();
    auto* blocks = reinterpret_cast<Blocks*>(key + count);
    auto* values = reinterpret_cast<T*>(blocks + count);
    for (const Change& change : changes.first(count)) {
      *key++ = this->key(change.number);
      *blocks++ = change.blocks;
      const std::span<const T> row = visible(change.number);
      columns_.for_each(change.blocks, [&](std::size_t first, std::size_t some) {
        set<T>({values, some}, row.subspan(first, some));
        values += some;
      });
    }
    messages.push_back(std::move(message));
    changes = changes.subspan(count);
  }
  return messages;
}

template <class T>
void OwnedRows<T>::add(Number first, std::size_t count, std::span<const T> values, net::Rank by) {
  const bool somebody_looks = !images_.empty() || before_ || rounded_ || any_subscriber_ || weighed_;
  for (std::size_t i = 0; somebody_looks && i < count; ++i) {
    const auto number = static_cast<Number>(first + i);
    const std::span<const T> of_row = values.subspan(i * settled_.width(), settled_.width());
    before_change(number);
    added(number, settled_.row(number), of_row, by);
    if (weighed_) moves(number, max_norm(of_row));  // since who was told last
  }
  const std::span<T> rows = settled_.rows(first, count);
  with_help(values.size(), sizeof(T), [&](std::size_t begin, std::size_t end) {
    table::add<T>(rows.subspan(begin, end - begin), values.subspan(begin, end - begin));
  });
}

template <class T>
void OwnedRows<T>::overlay(Number number, std::span<const T> values, net::Rank by) {
  Number& later = live_number_[number];
  if (later == RowMap<T>::kNone) {
    later = live_.insert(key(number));
    later_.push_back(0);
  }
  if (later_[later]++ == 0) set<T>(live_.row(later), settled_.row(number));
  added(number, live_.row(later), values, by);
  if (weighed_) moves(number, max_norm(values));
  table::add<T>(live_.row(later), values);
}

template <class T>
void OwnedRows<T>::settle(Number number, std::span<const T> values) {
  before_change(number);
  if (rounded_) rounded_->changes(number);        // the order of sums may be another
  table::add<T>(settled_.row(number), values);
  --later_[live_number_[number]];
}

template <class T>
void OwnedRows<T>::step(const Rule& rule, Number number, std::span<const T> gradient, double divisor, std::span<const T> sums) {
  if constexpr (std::is_floating_point_v<T>) {
    before_change(number);
    const std::span<T> state = state_.width() == 0 ? std::span<T>{} : state_.row(state_.insert(key(number)));
    changed(number, slowest_);  // who added a gradient does not know what became of it
    if (weighed_) moves(number, reach(rule, max_norm(gradient) / divisor));
    table::step<T>(rule, settled_.row(number), state, gradient, divisor, sums);
  }
}

template <class T>
void OwnedRows<T>::assign(Number number, std::span<const T> values) {
  before_change(number);
  if (rounded_) rounded_->forget(number);
  std::ranges::copy(values, settled_.row(number).begin());
  changed(number, kNever);
  const Number later = live_number_[number];
  if (later != RowMap<T>::kNone) std::ranges::copy(values, live_.row(later).begin());
}

// --- rows as an image has them

template <class T>
void OwnedRows<T>::keep(Number number) {
  for (RowsImage<T>* const image : images_) image->before_change(number);
  if (before_ && before_->find(number) == RowMap<T>::kNone) copy_out(number, before_->row(before_->insert(number)));
}

template <class T>
void OwnedRows<T>::copy_out(Number number, std::span<T> row) const {
  const std::size_t width = settled_.width();
  set<T>(row.first(width), settled_.row(number));
  if (state_.width() == 0) return;
  const Number state = state_.find(key(number));
  if (state == RowMap<T>::kNone) {
    std::ranges::fill(row.subspan(width), T{});
  } else {
    set<T>(row.subspan(width), state_.row(state));
  }
}

template <class T>
void OwnedRows<T>::put(Number number, std::span<const T> row) {
  assign(number, row.first(settled_.width()));
  if (state_.width() > 0) set<T>(state_.row(state_.insert(key(number))), row.subspan(settled_.width()));
}

template <class T>
void OwnedRows<T>::reset() {
  std::vector<T> row(full_width());
  for (Number number = 0; number < settled_.size(); ++number) {
    put(number, row);
    initialise(number);
  }
}

template <class T>
void OwnedRows<T>::take_over(OwnedRows& kept) {
  settled_ = std::move(kept.settled_);
  state_ = std::move(kept.state_);
  live_number_.assign(settled_.size(), RowMap<T>::kNone);
}

// --- readers

template <class T>
void OwnedRows<T>::make_room_for_subscribers() {
  subscribers_.resize(settled_.size() * words_);
  changed_.resize(subscribers_.size());
}

template <class T>
void OwnedRows<T>::subscribe(Number number, net::Rank reader) {
  if (!std::exchange(any_subscriber_, true)) make_room_for_subscribers();
  subscribers_[number * words_ + reader / 64] |= std::uint64_t{1} << (reader % 64);
}

template <class T>
void OwnedRows<T>::changed(Number number, Clock lacks) {
  changed(number, kNobody, lacks, [] { return kWhole; });
}

template <class T>
void OwnedRows<T>::added(Number number, std::span<const T> row, std::span<const T> values, net::Rank by) {
  changed(number, by, slowest_, [&] { return divides_ ? columns_.changed_by(values, row) : kWhole; });
}

// which(): the blocks; only where somebody is to be told.
template <class T>
template <class Which>
void OwnedRows<T>::changed(Number number, net::Rank by, Clock lacks, const Which& which) {
  if (rounded_) rounded_->changes(number);
  if (!any_subscriber_) return;
  std::optional<Blocks> blocks;
  for (std::size_t word = number * words_; word < (number + 1) * words_; ++word) {
    const auto first = static_cast<net::Rank>((word - number * words_) * 64);
    std::uint64_t others = subscribers_[word];
    if (by >= first && by < first + 64) others &= ~(std::uint64_t{1} << (by - first));  // it knows what it added
    if (others == 0) continue;
    if (!blocks) blocks = which();
    if (*blocks == 0) return;
    any_divided_ = any_divided_ || *blocks != kWhole;
    std::uint64_t untold = others & ~changed_[word], more = any_divided_ ? others & changed_[word] : 0;
    changed_[word] |= untold;
    for (; untold != 0; untold &= untold - 1) {
      untold_[first + static_cast<net::Rank>(std::countr_zero(untold))].add({number, lacks, number < moved_.size() ? moved_[number] : 0}, *blocks);
    }
    for (; more != 0; more &= more - 1) untold_[first + static_cast<net::Rank>(std::countr_zero(more))].grow(number, *blocks);
  }
}

template <class T>
std::size_t OwnedRows<T>::bytes(Blocks blocks) const {
  if (blocks == kWhole) return sizeof(Key) + row_bytes_;
  return sizeof(Key) + sizeof(Blocks) + columns_.count(blocks) * sizeof(T);
}

template <class T>
void OwnedRows<T>::moves(Number number, double magnitude) {
  if (number >= moved_.size()) moved_.resize(settled_.size());
  const double size = root_mean_square(visible(number));
  moved_[number] += size == 0 ? 1 : magnitude / size;
}

template <class T>
typename OwnedRows<T>::Round OwnedRows<T>::take_changes(net::Rank reader, std::size_t room, Clock due) {
  const auto moved = [&](Number number) { return number < moved_.size() ? moved_[number] : 0; };
  const auto travels = [this](Blocks blocks) { return std::min(bytes(blocks), bytes(kWhole)); };
  Untold& untold = untold_[reader];
  Round round;
  for (const Change& change : untold.take(untold.fit(room, travels), due, moved)) {
    changed_[change.number * words_ + reader / 64] &= ~(std::uint64_t{1} << (reader % 64));
    if (bytes(change.blocks) < bytes(kWhole)) {
      round.some.push_back(change);
    } else {
      round.whole.push_back(change.number);
    }
  }
  return round;
}

template <class T>
void OwnedRows<T>::unsubscribe(std::span<const Number> numbers, net::Rank reader) {
  if (!any_subscriber_) return;
  const std::uint64_t bit = std::uint64_t{1} << (reader % 64);
  for (const Number number : numbers) {
    subscribers_[number * words_ + reader / 64] &= ~bit;
    changed_[number * words_ + reader / 64] &= ~bit;
  }
  untold_[reader].drop([&](Number number) { return (changed_[number * words_ + reader / 64] & bit) == 0; });
}

template <class T>
void OwnedRows<T>::unsubscribe() {
  if (!std::exchange(any_subscriber_, false)) return;
  subscribers_.clear();
  changed_.clear();
  for (Untold& untold : untold_) untold.clear();
}

template class OwnedRows<float>;
template class OwnedRows<double>;
template class OwnedRows<std::int32_t>;
template class OwnedRows<std::int64_t>;

}  // namespace shoal::table
