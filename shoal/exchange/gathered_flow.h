// A flow that gathers the rows of all members (row_gather.h) and, where an iteration asks for it, adds whole tensors beside or instead of them,
// by an all-reduce to which whoever has none contributes zeros.
#pragma once

#include <vector>

#include "shoal/exchange/row_gather.h"
#include "shoal/exchange/way.h"

namespace shoal::exchange {

class GatheredFlow : public Flow {
 public:
  std::uint64_t operations() const override { return gather_.operations() + 1; }

 protected:
  // `adding` adds tensors of the size and type of `tensor`.
  GatheredFlow(const Road& road, const TensorSpec& tensor, const RowTransfers& by, std::vector<RowGather::Column> columns,
               const collective::Verified& adding);

  void gather(const Departure& departure, RowGather::Own own, net::Done done);  // what start() comes to
  const RowGather& rows() const { return gather_; }
  const collective::Run& run() const { return run_; }

  // On the loop. Everybody's number of rows is known: the moment for add_whole(). False: no rows are to leave. May throw Error (no memory).
  virtual bool counted() = 0;
  virtual net::Failure arrived() = 0;  // everything has: rows, and sums if any were asked for
  void add_whole(const std::byte* own, std::byte* sum);  // own: nullptr for none

 private:
  void part_arrived(const net::Failure& why);

  const DType type_;
  const std::uint64_t count_;
  const collective::Verified& adding_;
  RowGather gather_;

  collective::Run run_;
  net::Done done_;
  int waiting_ = 0;
  net::Failure failure_;
  Zeros zeros_;
};

}  // namespace shoal::exchange
