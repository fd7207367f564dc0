// Rows of equal width by 64-bit key: what a server owns, what a reader copied, what a worker has added. Open addressing with linear
// probing; a row has a number, in the order in which rows came, and stays where it is. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "shoal/core/dtype.h"
#include "shoal/core/reduce.h"

namespace shoal::table {

using Key = std::uint64_t;

// Spreads keys over 64 bits (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA'14; the finaliser).
inline std::uint64_t spread(Key key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

template <class T>
class RowMap {
 public:
  using Number = std::uint32_t;
  static constexpr Number kNone = ~Number{0};

  explicit RowMap(std::size_t width) : width_(width) {
    while (shift_ > 0 && (width_ * sizeof(T) << shift_) > kBlockBytes) --shift_;
  }

  std::size_t size() const { return keys_.size(); }
  std::size_t width() const { return width_; }
  std::span<const Key> keys() const { return keys_; }  // by number
  std::size_t bytes() const { return size() * (width_ * sizeof(T) + sizeof(Key)) + slots_.size() * sizeof(Slot); }

  Number find(Key key) const {
    if (slots_.empty()) return kNone;
    for (std::size_t at = spread(key) & mask();; at = (at + 1) & mask()) {
      const Slot& slot = slots_[at];
      if (slot.number == kNone || slot.key == key) return slot.number;
    }
  }
  // A row that is new holds zeros, and has number size() - 1.
  Number insert(Key key) {
    if (2 * (keys_.size() + 1) > slots_.size()) grow();
    std::size_t at = spread(key) & mask();
    for (; slots_[at].number != kNone; at = (at + 1) & mask()) {
      if (slots_[at].key == key) return slots_[at].number;
    }
    const auto number = static_cast<Number>(keys_.size());
    slots_[at] = {key, number};
    keys_.push_back(key);
    if (number >> shift_ == blocks_.size()) blocks_.push_back(std::make_unique<T[]>(width_ << shift_));
    return number;
  }
  std::span<T> row(Number number) { return {place(number), width_}; }
  std::span<const T> row(Number number) const { return {place(number), width_}; }

 private:
  struct Slot {
    Key key = 0;
    Number number = kNone;
  };
  static constexpr std::size_t kBlockBytes = 64 * 1024;

  std::size_t mask() const { return slots_.size() - 1; }
  T* place(Number number) const { return blocks_[number >> shift_].get() + (number & ((Number{1} << shift_) - 1)) * width_; }
  void grow() {
    slots_.assign(slots_.empty() ? 16 : 2 * slots_.size(), Slot{});
    for (Number number = 0; number < keys_.size(); ++number) {
      std::size_t at = spread(keys_[number]) & mask();
      while (slots_[at].number != kNone) at = (at + 1) & mask();
      slots_[at] = {keys_[number], number};
    }
  }

  std::size_t width_;
  unsigned shift_ = 12;                        // log2 of the rows of a block
  std::vector<Slot> slots_;                    // a power of two, at most half full
  std::vector<Key> keys_;                      // by number
  std::vector<std::unique_ptr<T[]>> blocks_;   // never move
};

template <class T>
inline constexpr DType kTypeOf = DType::f32;
template <>
inline constexpr DType kTypeOf<double> = DType::f64;
template <>
inline constexpr DType kTypeOf<std::int32_t> = DType::i32;
template <>
inline constexpr DType kTypeOf<std::int64_t> = DType::i64;

// into[i] += from[i]; integers wrap.
template <class T>
void add(std::span<T> into, std::span<const T> from) {
  constexpr std::size_t worth_a_call = 32;
  if (into.size() >= worth_a_call) return reduce(kTypeOf<T>, ReduceOp::sum, into.data(), from.data(), into.size());
  for (std::size_t i = 0; i < into.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      into[i] = static_cast<T>(static_cast<Unsigned>(into[i]) + static_cast<Unsigned>(from[i]));
    } else {
      into[i] += from[i];
    }
  }
}

}  // namespace shoal::table
