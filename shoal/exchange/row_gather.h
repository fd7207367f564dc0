// Rows from all members side by side in rank order, of which everybody may have another number in each iteration: first how many everybody
// has, then the rows themselves, each column in one all-gather.
//
// Threads: start() and what follows on the transport's loop; the rest may be read by whoever saw done.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "shoal/exchange/buffer.h"
#include "shoal/exchange/flow.h"
#include "shoal/exchange/leg.h"
#include "shoal/exchange/programs.h"

namespace shoal::exchange {

// How a unit's rows travel: each part by the builder that its size suggests, the same in the price and on the wire.
struct RowTransfers {
  Leg heads, rows;  // one after the other; rows: of all columns

  RowTransfers(std::uint32_t ranks, std::uint64_t rows_of_a_member, std::uint64_t row_bytes, const collective::LinkModel& link);
};

class RowGather {
 public:
  struct Column {
    DType type = DType::f32;
    std::uint64_t width = 1;  // elements of a row
  };
  struct Own {
    std::uint64_t rows = 0;
    bool marked = false;                    // what it means is the flow's
    std::vector<const std::byte*> columns;  // rows x width each, contiguous
  };
  struct Head {  // what a member says ahead of its rows
    std::uint64_t rows = 0, marked = 0;
  };

  RowGather(Courier& courier, Programs& programs, const RowTransfers& by, std::vector<Column> columns);

  std::uint64_t operations() const { return 1 + columns_.size(); }
  // counted: runs when everybody's number is known; false: no rows are to leave. own's memory stays until done has run. run: slices,
  // priority, first operation and label.
  void start(Own own, const collective::Run& run, std::function<bool()> counted, net::Done done);

  const std::vector<std::uint64_t>& rows() const { return rows_; }  // by rank
  std::uint64_t total() const { return total_; }
  bool anybody_marked() const { return marked_; }
  std::byte* column(std::size_t i) const { return at_[i]; }         // total x width, until the next start()

 private:
  net::Failure read_heads();
  void gather();
  void arrived(const net::Failure& why);

  Courier& courier_;
  const collective::Verified &heads_program_, &rows_program_;
  const std::vector<Column> columns_;
  std::uint64_t row_bytes_ = 0;

  Own own_;
  collective::Run run_;
  std::function<bool()> counted_;
  net::Done done_;
  Head own_head_;
  std::vector<Head> heads_;  // by rank
  std::vector<std::uint64_t> rows_;
  std::uint64_t total_ = 0;
  bool marked_ = false;
  int waiting_ = 0;
  net::Failure failure_;
  std::vector<Buffer> memory_;  // by column
  std::vector<std::byte*> at_;
};

}  // namespace shoal::exchange
