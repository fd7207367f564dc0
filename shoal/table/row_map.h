// Rows of equal width by 64-bit key: what a server owns, what a reader copied, what a worker has added. A row has a number, in the order
// in which rows came, and stays where it is. Open addressing with linear probing; but while each key that came was above the last one,
// the list of keys is all there is. Slots hold 32 bits of hashes in place of keys: half the memory, so that caches bear twice as many rows.
//
// Who goes through many keys says where the next one may be: behind the last. Lists of keys mostly come in an order in which they came
// before, and then rows are found one behind the other, without a look at any table. Threads: one at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/core/dtype.h"
#include "shoal/core/reduce.h"
#include "shoal/table/cold_file.h"

namespace shoal::table {

using Key = std::uint64_t;

// Spreads keys over 64 bits (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA'14; the finaliser).
inline std::uint64_t spread(Key key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

template <class T>
inline constexpr DType kTypeOf = DType::f32;
template <>
inline constexpr DType kTypeOf<double> = DType::f64;
template <>
inline constexpr DType kTypeOf<std::int32_t> = DType::i32;
template <>
inline constexpr DType kTypeOf<std::int64_t> = DType::i64;

inline constexpr std::size_t kWorthACall = 32;  // elements: shorter rows are done in place

// into[i] = from[i].
template <class T>
void set(std::span<T> into, std::span<const T> from) {
  if (into.size() >= kWorthACall) {
    std::memcpy(into.data(), from.data(), into.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = from[i];
}

// into[i] += from[i]; integers wrap.
template <class T>
void add(std::span<T> into, std::span<const T> from) {
  if (into.size() >= kWorthACall) return reduce(kTypeOf<T>, ReduceOp::sum, into.data(), from.data(), into.size());
  for (std::size_t i = 0; i < into.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      into[i] = static_cast<T>(static_cast<Unsigned>(into[i]) + static_cast<Unsigned>(from[i]));
    } else {
      into[i] += from[i];
    }
  }
}

// Rows that travel together take about so many bytes, of keys and values; one row may be longer.
inline constexpr std::size_t kMessageBytes = 256 * 1024;
inline std::size_t rows_a_message(std::size_t bytes_a_row) { return std::max<std::size_t>(1, kMessageBytes / (bytes_a_row + sizeof(Key))); }

template <class T>
class RowMap {
 public:
  using Number = std::uint32_t;
  static constexpr Number kNone = ~Number{0};

  // cold: where the values of rows lie; nullptr: in memory, where keys always are, so that who looks for a row reads no file.
  explicit RowMap(std::size_t width, std::shared_ptr<ColdFile> cold = nullptr) : RowMap(width, BytesPool::of_process(), 0) { cold_ = std::move(cold); }
  // In memory of that kind. usual: about so many will come.
  RowMap(std::size_t width, std::shared_ptr<const BytesPool> pool, std::size_t usual) : width_(width), usual_(usual), pool_(std::move(pool)) {
    while (shift_ > 0 && ((width_ * sizeof(T) + sizeof(Key)) << shift_) > kMessageBytes) --shift_;
  }

  RowMap(RowMap&&) = default;
  RowMap& operator=(RowMap&&) = default;  // not copied: the copy's memory would be the same

  std::size_t size() const { return size_; }
  std::size_t width() const { return width_; }
  Key key(Number number) const { return keys(number)[number & last_of_block()]; }

  // `near`: looked at first.
  Number find(Key key, Number near = 0) const {
    if (is_at(near, key)) return near;
    if (ordered_) return find_in_order(key);
    if (slots_.empty()) index();
    return find_slot(key).number;
  }
  // A row that is new holds zeros, and has number size() - 1.
  Number insert(Key key, Number near = 0) {
    const std::size_t before = size_;
    const Number number = place(key, near);
    if (size_ > before) std::ranges::fill(row(number), T{});
    return number;
  }
  // From now on the row of that key is another one, which holds anything: `into`, that was replaced before, or a new one. This one keeps its number,
  // values and memory, and is found no more.
  Number replace(Number number, Number into = kNone) {
    const Key key = this->key(number);
    if (slots_.empty()) index();
    ordered_ = false;
    Slot& slot = find_slot(key);
    if (into == kNone) into = append(key);
    keys(into)[into & last_of_block()] = key;
    any_replaced_ = true;
    replaced_.resize(size_);
    replaced_[number] = true;
    replaced_[into] = false;
    return slot.number = into;
  }
  // The rows of a block lie in the same memory.
  std::size_t block_of(Number number) const { return number >> shift_; }
  const Bytes& memory_of(Number number) const { return blocks_[number >> shift_].bytes; }
  // For who goes through many keys out of order, each some keys ahead: that guess() will be asked for this one; where it most likely is, to be
  // given as `near`, with what will be read there on its way into the cache.
  void expect(Key key) const {
    if (!slots_.empty()) __builtin_prefetch(&slots()[spread(key) & mask()]);
  }
  Number guess(Key key) const {
    if (slots_.empty()) return kNone;
    const std::uint64_t hash = spread(key);
    std::size_t at = hash & mask();
    while (slots()[at].number != kNone && slots()[at].tag != tag_of(hash)) at = (at + 1) & mask();
    const Number number = slots()[at].number;
    if (number == kNone) return kNone;
    __builtin_prefetch(keys(number) + (number & last_of_block()));
    __builtin_prefetch(values(number), 1);
    return number;
  }
  // For who goes through all rows by their numbers: that these will be next.
  void read_ahead(std::size_t begin, std::size_t count) const {
    for (std::size_t block = begin >> shift_; cold_ && block << shift_ < std::min(begin + count, size_); ++block) ColdFile::read_ahead(blocks_[block].bytes);
  }
  // The row's values, or those of zeros, and these. set_new(row, values): sets a row that is new.
  template <class SetNew>
  Number add(Key key, Number near, std::span<const T> values, const SetNew& set_new);
  Number add(Key key, Number near, std::span<const T> values) { return add(key, near, values, set<T>); }
  // The same of the first of these rows, one below the other: as many as are above all that came before, each above the last; returns how many.
  std::size_t append(std::span<const Key> keys, std::span<const T> values);
  // How many of these keys lie one behind the other from that number on, their values, too.
  std::size_t run(Number first, std::span<const Key> keys) const {
    if (first >= size_) return 0;
    const std::size_t in_block = std::min<std::size_t>(size_ - first, last_of_block() + 1 - (first & last_of_block()));
    const std::span<const Key> here(this->keys(first) + (first & last_of_block()), std::min(in_block, keys.size()));
    const auto same = static_cast<std::size_t>(std::ranges::mismatch(here, keys).in1 - here.begin());
    std::size_t run = any_replaced_ ? 0 : same;
    while (run < same && !is_replaced(static_cast<Number>(first + run))) ++run;
    return run;
  }
  std::span<T> rows(Number first, std::size_t count) { return {values(first), count * width_}; }  // of a run
  std::span<T> row(Number number) { return {values(number), width_}; }
  std::span<const T> row(Number number) const { return {values(number), width_}; }

  // All rows in the order of their numbers, as bodies of messages: keys, and behind them their values; not of cold ones. The rows stay where they
  // can be read; nothing may be written any more. Memory for finding them is let go until one is looked for.
  struct Body {
    std::size_t rows;
    Bytes bytes;
  };
  std::vector<Body> bodies();

 private:
  struct Slot {
    std::uint32_t tag;
    Number number;
  };
  struct Block {
    Bytes bytes;  // keys, and behind them values; where rows are cold, values alone
    Bytes cold_keys;
    Key* keys;
    T* values;
  };

  Slot* slots() const { return reinterpret_cast<Slot*>(slots_.data()); }
  std::size_t slot_count() const { return slots_.size() / sizeof(Slot); }
  std::size_t mask() const { return slot_count() - 1; }
  Number last_of_block() const { return (Number{1} << shift_) - 1; }
  Key* keys(Number number) const { return blocks_[number >> shift_].keys; }
  T* values(Number number) const { return blocks_[number >> shift_].values + (number & last_of_block()) * width_; }
  Block block(std::size_t rows) const {
    const std::size_t size = rows * width_ * sizeof(T);
    Block made{cold_ ? cold_->take(size) : pool_->take(rows * sizeof(Key) + size), cold_ ? Bytes(rows * sizeof(Key)) : Bytes(), nullptr, nullptr};
    made.keys = reinterpret_cast<Key*>((cold_ ? made.cold_keys : made.bytes).data());
    made.values = reinterpret_cast<T*>(made.bytes.data() + (cold_ ? 0 : rows * sizeof(Key)));
    return made;
  }

  bool is_at(Number near, Key key) const { return near < size_ && this->key(near) == key && !is_replaced(near); }
  bool is_replaced(Number number) const { return any_replaced_ && number < replaced_.size() && replaced_[number]; }
  Number find_in_order(Key key) const;
  bool in_order(Key key) const { return ordered_ && (size_ == 0 || this->key(static_cast<Number>(size_ - 1)) < key); }
  // A row that is new holds anything.
  Number place(Key key, Number near) {
    if (is_at(near, key)) return near;
    return in_order(key) ? append(key) : place_by_slot(key);
  }
  Number place_by_slot(Key key);
  void make_room() {
    if (size_ < room_) [[likely]] return;
    blocks_.push_back(block(std::size_t{1} << shift_));
    room_ += std::size_t{1} << shift_;
  }
  Number append(Key key) {
    make_room();
    const auto number = static_cast<Number>(size_++);
    keys(number)[number & last_of_block()] = key;
    return number;
  }
  void index() const;
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
  Slot& find_slot(Key key) const {  // where it is, or will be
    const std::uint64_t hash = spread(key);
    std::size_t at = hash & mask();
    const auto is_other = [&](const Slot& slot) {
      return slot.number != kNone && (slot.tag != tag_of(hash) || this->key(slot.number) != key);
    };
    while (is_other(slots()[at])) at = (at + 1) & mask();
    return slots()[at];
  }

  std::size_t width_, size_ = 0, room_ = 0;    // of a row; rows
  std::size_t usual_;                          // rows
  unsigned shift_ = 14;                        // log2 of the rows of a block
  bool ordered_ = true;                        // keys came in order
  mutable Bytes slots_;                        // a power of two, at most three quarters full; none: in order, or not looked for since bodies()
  std::vector<Block> blocks_;                  // never move
  std::vector<bool> replaced_;                 // by number, of the first rows; others were not
  bool any_replaced_ = false;                  // ever
  std::shared_ptr<const BytesPool> pool_;
  std::shared_ptr<ColdFile> cold_;
};

template <class T>
typename RowMap<T>::Number RowMap<T>::find_in_order(Key key) const {
  const auto numbers = std::views::iota(Number{0}, static_cast<Number>(size_));
  const auto found = std::ranges::partition_point(numbers, [&](Number number) { return this->key(number) < key; });
  return found != numbers.end() && this->key(*found) == key ? *found : kNone;
}

template <class T>
typename RowMap<T>::Number RowMap<T>::place_by_slot(Key key) {
  ordered_ = false;
  if (4 * (size_ + 1) > 3 * slot_count()) index();
  Slot& slot = find_slot(key);
  if (slot.number != kNone) return slot.number;
  slot = {tag_of(spread(key)), static_cast<Number>(size_)};
  return append(key);
}

// With room for about as many again.
template <class T>
void RowMap<T>::index() const {
  slots_ = {};                                 // its memory may be what is needed
  slots_ = Bytes(std::bit_ceil(std::max<std::size_t>({16, 2 * size_, usual_ + usual_ / 2})) * sizeof(Slot));
  std::memset(slots_.data(), 0xff, slots_.size());
  static_assert(kNone == ~Number{0});          // all bits
  for (Number number = 0; number < size_; ++number) {
    if (is_replaced(number)) continue;
    const std::uint64_t hash = spread(key(number));
    std::size_t at = hash & mask();
    while (slots()[at].number != kNone) at = (at + 1) & mask();
    slots()[at] = {tag_of(hash), number};
  }
}

template <class T>
std::vector<typename RowMap<T>::Body> RowMap<T>::bodies() {
  std::vector<Body> bodies;
  slots_ = {};
  for (std::size_t begin = 0; begin < size_; begin += std::size_t{1} << shift_) {
    Block& of = blocks_[begin >> shift_];
    const std::size_t rows = std::min(size_ - begin, std::size_t{1} << shift_);
    if (rows < std::size_t{1} << shift_) {  // keys and values move together
      Block short_of = block(rows);
      std::memcpy(short_of.bytes.data(), of.bytes.data(), rows * sizeof(Key));
      std::memcpy(short_of.values, of.values, rows * width_ * sizeof(T));
      of = std::move(short_of);
    }
    bodies.push_back({rows, of.bytes});
  }
  return bodies;
}

template <class T>
std::size_t RowMap<T>::append(std::span<const Key> keys, std::span<const T> values) {
  std::size_t done = 0;
  while (done < keys.size() && in_order(keys[done])) {
    make_room();
    const auto first = static_cast<Number>(size_);
    const std::span<const Key> left = keys.subspan(done, std::min(keys.size() - done, room_ - size_));
    const auto count = static_cast<std::size_t>(std::ranges::adjacent_find(left, std::ranges::greater_equal{}) - left.begin());
    const std::size_t some = count == left.size() ? count : count + 1;
    std::ranges::copy(left.first(some), this->keys(first) + (first & last_of_block()));
    size_ += some;
    set<T>(rows(first, some), values.subspan(done * width_, some * width_));
    done += some;
  }
  return done;
}

template <class T>
template <class SetNew>
typename RowMap<T>::Number RowMap<T>::add(Key key, Number near, std::span<const T> values, const SetNew& set_new) {
  const std::size_t before = size_;
  const Number number = place(key, near);
  if (size_ > before) {
    set_new(row(number), values);
  } else {
    table::add<T>(row(number), values);
  }
  return number;
}

}  // namespace shoal::table
