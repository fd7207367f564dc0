// A barrier that names who has not come: every member tells rank 0 that it is there, and rank 0 lets all go on together. One at
// a time in a group, numbered as they are entered.
//
// Threads: the transport's loop only. Lifetime: transport and notes outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shoal/nn/group/notes.h"

namespace shoal::nn {

class MonitoredBarrier {
 public:
  MonitoredBarrier(net::Transport& transport, Notes& notes);  // before notes.listen()
  // `all_missing`: rank 0 names all who have not come, else the first.
  void enter(Nanoseconds patience, bool all_missing, net::Done done);
  void end(const net::Failure& why);               // whoever waits

 private:
  struct Open {
    std::uint64_t number = 0;
    bool all_missing = false;
    Nanoseconds patience{};
    net::Done done;
    std::uint64_t deadline = 0;                    // timer
  };
  void let_go();                                   // rank 0: if everybody is there
  void timed_out();

  net::Transport& transport_;
  Notes& notes_;
  std::optional<Open> open_;
  std::uint64_t entered_ = 0;                      // by this member
  std::vector<std::uint64_t> entered_by_;          // rank 0: how many each member has entered
};

// "rank 2 has", "ranks 1, 3 have"; empty if nobody is missing.
std::string missing_ranks(const std::vector<bool>& there);

}  // namespace shoal::nn
