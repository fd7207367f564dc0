// Sums of outer products with sparse factors: how learners over sparse data change a matrix W that has a row for each column of the data.
// A minibatch of K samples x_k, each with a vector u_k of its errors, adds sum over k of x_k u_kᵀ to W (Xie et al., UAI 2016, section 2):
//
//   row r of W  gains  sum over k of  x_k[r] u_k          r: only rows that some x_k touches
//
// The factors say that in K |u| + (numbers of the x_k that are not zero) numbers, where the rows that change have |u| numbers each. They lie by
// row, so that whoever adds them goes through W once, each row in its cache while all of its products are added, in the order of k.
//
// Its wire form, in bytes:   u32 K, u32 rows, u32 entries; u_0 ... u_K-1; coefficients (f32); which k each belongs to, in 1, 2 or 4 bytes as
// K needs; and for each row, ascending: by how much its key is above the last one's, and its entries, both as LEB128. Lossless.
//
// Values. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shoal/core/bytes.h"

namespace shoal::factor {

template <class T>  // float or double, of W
class Outer {
 public:
  using Key = std::uint64_t;
  // width: of u. rows: each that some x_k touches, once, in any order.
  explicit Outer(std::size_t width = 0, std::span<const Key> rows = {}) : width_(width), rows_(rows.begin(), rows.end()) {}

  // --- gathered entry by entry, then sealed; only a sealed one is looked at
  std::span<T> new_vector();  // u_k, to be filled in; k counts from 0
  // An entry of the last x_k, for the at-th of the rows given; each once.
  void add(std::size_t at, float coefficient) { open_.push_back({static_cast<std::uint32_t>(at), vectors() - 1, coefficient}); }
  // Puts rows and entries in order. Throws Error{invalid_argument} where a number is not finite.
  void seal();

  std::size_t width() const { return width_; }
  std::uint32_t vectors() const { return static_cast<std::uint32_t>(width_ == 0 ? 0 : vectors_.size() / width_); }  // K
  std::span<const Key> rows() const { return rows_; }  // that change, ascending
  std::size_t entries() const { return entries_.size(); }
  // into += what the at-th of rows() gains; `into` has width() numbers.
  void add_to(std::size_t at, std::span<T> into) const;

  Bytes write() const;
  // Throws Error{mismatch} unless `from` is what write() makes of something of that width with rows below `end`.
  static Outer read(std::span<const std::byte> from, std::size_t width, Key end);

 private:
  struct Open {
    std::uint32_t at, vector;
    float coefficient;
  };
  struct Entry {
    std::uint32_t vector;
    float coefficient;
  };
  std::size_t width_;
  std::vector<Key> rows_;
  std::vector<T> vectors_;
  std::vector<Open> open_;
  std::vector<std::uint64_t> ends_;  // of each row's entries
  std::vector<Entry> entries_;
};

}  // namespace shoal::factor
