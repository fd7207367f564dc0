// The settled rows of a server as they were at one moment, each with the state of the table's rule, walked through in chunks while rows go on
// changing. A row that is about to change is copied first, unless the walk has passed it. So nobody waits for the walk, and memory is
// bounded by the rows that change meanwhile. A chunk does not know where it goes: into a part of a snapshot (part_file.h), or to a server.
//
//   chunk   keys, and behind them for each its values and its state: the body of a message of kind put
//
// Threads: the transport's loop. Lifetime: the rows outlive their images; there may be several of the same rows.
#pragma once

#include <span>

#include "shoal/table/owned_rows.h"

namespace shoal::table {

class Image {
 public:
  virtual ~Image() = default;
  // About kMessageBytes of the rows that follow; empty: that was all.
  virtual Bytes next() = 0;
};

template <class T>
class RowsImage final : public Image {
 public:
  using Number = typename RowMap<T>::Number;

  // Of the rows as they are now.
  explicit RowsImage(OwnedRows<T>& rows);
  ~RowsImage() override;
  RowsImage(const RowsImage&) = delete;
  Bytes next() override;
  void before_change(Number number);               // called by the rows
  // That row as it was earlier; the first call for a row counts. Before the walk.
  void keep(Number number, std::span<const T> row) {
    if (kept_.find(number) == RowMap<T>::kNone) set<T>(kept_.row(kept_.insert(number)), row);
  }

 private:
  OwnedRows<T>& rows_;
  const Number end_;                               // rows that came later had their initial values
  Number at_ = 0;                                  // the next to walk through
  RowMap<T> kept_;                                 // by number: as it was
};

// The answer to a message of kind fetch: rows as an image has them.
template <class T>
Message fetched(OwnedRows<T>& rows, const Message& fetch);

extern template class RowsImage<float>;
extern template class RowsImage<double>;
extern template class RowsImage<std::int32_t>;
extern template class RowsImage<std::int64_t>;

}  // namespace shoal::table
