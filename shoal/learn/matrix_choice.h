// Whether members should share a matrix as rows of a table or as factors: by what they do in a clock and by what their links give
// (exchange/matrix_way.h). Every call by all members alike, with the same answer on all. Threads: one.
#pragma once

#include <cstdint>
#include <string>

#include "shoal/core/time.h"
#include "shoal/exchange/matrix_way.h"
#include "shoal/learn/shared_sums.h"
#include "shoal/net/transport.h"

namespace shoal::learn {

class MatrixChoice {
 public:
  struct Of {                           // the matrix, and who shares it
    std::string name;
    double rows = 0, width = 0, element_bytes = 4;
    bool pushed = false;                // rows are, by the table's consistency
    double multiply_rate = 1;           // floating-point operations/s of this member adding factors to rows
    std::uint16_t channel = 6;          // of the transport's operations, without the number 0; nothing else uses it
    Nanoseconds patience{};             // for a measurement
  };
  struct Load {
    exchange::MatrixLoad mean;          // of all members
    double multiply_rate = 1;
    bool room = true;                   // all have memory for the whole matrix, twice
    bool room_for_both = true;          // and for rows of a table and copies of them beside it
  };
  struct Answer {
    bool factors = false;
    bool by_links = false;              // on other links it would be the other way
    double seconds = 0;                 // that it is predicted to take of a clock; 0: nothing was measured
    std::string why;                    // half a sentence
  };

  MatrixChoice(net::Transport& transport, table::Worker& worker, Of of);

  // own: what this member does in a clock; of it vectors, entries and touched.
  Load load(const exchange::MatrixLoad& own);
  // Links are measured where it depends on them: on slow ones that takes longer than many clocks do.
  Answer answer(const Load& load);
  // The same while one way is in use, always measured: the other must be predicted to take a tenth less.
  Answer answer_again(const Load& load, bool factors_now);
  bool any(bool own);                   // of all members says so
  // Numbers of operations in the channel, for the caller's own.
  std::uint64_t take_operations(std::uint64_t count);

 private:
  Answer measured(const Load& load, double factors_at_most);

  net::Transport& transport_;
  const Of of_;
  SharedSums sums_;
  std::uint64_t next_operation_ = 1;
};

}  // namespace shoal::learn
