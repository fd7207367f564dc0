// Rows as a worker read them at one moment, where they lie: none is copied but those with increments of its own that no server has counted in.
//
// They stay as they are for as long as the view or a copy of it lives, whatever comes meanwhile: what is then written goes to other memory
// (copies.h), and what is dropped, as of a table and its Tables that end before it, leaves its memory to the view.
//
// Values; threads: as of a container. A view may end on any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/table/clocks.h"
#include "shoal/table/row_map.h"

namespace shoal::table {

// Which views of a table's rows live, by their numbers: that of a later one is greater. Threads: any.
class Views {
 public:
  using Living = std::shared_ptr<const std::uint64_t>;  // the number of one that lives
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  static Living begin(const std::shared_ptr<Views>& views) {
    const std::lock_guard lock(views->mutex_);
    const std::uint64_t number = *views->living_.insert(views->living_.end(), ++views->last_);
    views->oldest_.store(*views->living_.begin(), std::memory_order_release);
    return {new std::uint64_t(number), [views](const std::uint64_t* ended) {
              views->end(*ended);
              delete ended;
            }};
  }
  // kNone: none lives. Whatever the views before it read, they have read.
  std::uint64_t oldest() const { return oldest_.load(std::memory_order_acquire); }

 private:
  void end(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    living_.erase(number);
    oldest_.store(living_.empty() ? kNone : *living_.begin(), std::memory_order_release);
  }

  std::mutex mutex_;                    // guards the next two
  std::set<std::uint64_t> living_;
  std::uint64_t last_ = 0;
  std::atomic<std::uint64_t> oldest_{kNone};
};

template <class T>
class View {
 public:
  View() = default;                     // of no rows
  std::size_t size() const { return rows_.size(); }
  std::size_t width() const { return width_; }
  // The row of the i-th key.
  std::span<const T> operator[](std::size_t i) const { return {rows_[i], width_}; }
  std::span<const T* const> rows() const { return rows_; }
  // Whether they lie one behind the other, as one piece of memory.
  bool is_one_piece() const {
    for (std::size_t i = 1; i < size(); ++i) {
      if (rows_[i] != rows_[i - 1] + width_) return false;
    }
    return true;
  }
  // The i-th row has everybody's increments with timestamps below age(i), so it is clock() - age(i) clocks behind its reader; age(): the least of all.
  Clock age(std::size_t i) const { return ages_[i]; }
  Clock age() const { return ages_.empty() ? clock_ : *std::ranges::min_element(ages_); }
  std::span<const Clock> ages() const { return ages_; }
  Clock clock() const { return clock_; }  // its worker's, when it read
  // How many rows are copies, for they hold increments of the reader's own that no server had counted in.
  std::size_t copied() const { return static_cast<std::size_t>(std::ranges::count(is_copy_, true)); }

 private:
  template <class>
  friend class Copies;                  // makes it
  template <class>
  friend class Copy;                    // and adds to it
  View(Views::Living living, std::size_t width, Clock clock, std::size_t rows) : living_(std::move(living)), width_(width), clock_(clock) {
    rows_.reserve(rows);
    ages_.reserve(rows);
  }
  std::uint64_t number() const { return *living_; }
  void show(const T* row, Clock age, Bytes memory) {  // memory: that it lies in, if no row before does
    rows_.push_back(row);
    ages_.push_back(age);
    if (!memory.empty()) memory_.push_back(std::move(memory));
  }
  // The i-th row as a copy, to be written.
  std::span<T> copy_of(std::size_t i) {
    is_copy_.resize(size());
    if (!is_copy_[i]) {
      if (room_ == 0) {                 // for what may still come, and not more than a message's worth
        room_ = std::min(size() - copied(), rows_a_message(width_ * sizeof(T)));
        memory_.emplace_back(room_ * width_ * sizeof(T));
      }
      T* const copy = reinterpret_cast<T*>(memory_.back().end()) - room_-- * width_;
      set<T>({copy, width_}, (*this)[i]);
      rows_[i] = copy;
      is_copy_[i] = true;
    }
    return {const_cast<T*>(rows_[i]), width_};
  }

  Views::Living living_;
  std::size_t width_ = 0;
  Clock clock_ = 0;
  std::vector<const T*> rows_;
  std::vector<Clock> ages_;
  std::vector<Bytes> memory_;           // that rows_ point into; what is copied lies in the last ones
  std::vector<bool> is_copy_;           // by row; none: no row is
  std::size_t room_ = 0;                // rows, at the end of the last of memory_
};

}  // namespace shoal::table
