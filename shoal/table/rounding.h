// Rows that are rounded on their way (encoding.h), and what that leaves out: it is kept where the row left from and added to the next that leaves
// of it (error feedback: Seide et al., Interspeech 2014; Karimireddy et al., ICML 2019). So sums of increments are off by what was left out last,
// however many there were. Values; threads: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/table/encoding.h"
#include "shoal/table/message.h"

namespace shoal::table {

// Messages with rows that are rounded, or as they came, into each other; others stay as they are. bodies: memory for what is sent.
template <class T>
Message encoded(Encoding encoding, Message message, std::size_t width, const BytesPool& bodies = *BytesPool::of_process());
template <class T>
Message decoded(Encoding encoding, Message message, std::size_t width);

// What was left out of increments, by key.
template <class T>
class LeftOut {
 public:
  LeftOut(Encoding encoding, std::size_t width) : encoding_(encoding), rows_(width) {}
  // row: an increment that leaves. What was left out before is added, and it becomes what the server gets.
  void round(Key key, std::span<T> row);
  bool rounds() const { return encoding_ != Encoding::none; }
  void clear() { rows_ = RowMap<T>(rows_.width()); }

 private:
  Encoding encoding_;
  RowMap<T> rows_;
};

// Rows as readers are shown them, by number: each state of a row is rounded once, so that all are shown the same bits. What was left out is added
// to the next state, but no more than half a step there: what is shown is never further than one step from what is.
template <class T>
class Rounded {
 public:
  Rounded(Encoding encoding, std::size_t width) : encoding_(encoding), shown_(width), left_out_(width) {}
  Encoding encoding() const { return encoding_; }
  void changes(std::uint32_t number) {
    if (number < stale_.size()) stale_[number] = true;
  }
  void forget(std::uint32_t number);                   // it begins anew
  std::span<const T> show(std::uint32_t number, std::span<const T> row);

 private:
  const Encoding encoding_;
  RowMap<T> shown_, left_out_;                         // by number
  std::vector<bool> stale_;                            // by number: it has changed since it was shown
};

}  // namespace shoal::table
