// What Slurm (srun --mpi=pmix), Open MPI's mpirun and other launchers offer to what they start: a private board of values by
// rank. libpmix is loaded when it is first asked for, so nothing needs it at build time or where there is no such launcher.
//
// Only for joining: the connection to the launcher ends with this object, before any work; else a launcher would take a
// member that exits for one that crashed. Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::net {

class Pmix {
 public:
  // Throws Error{unsupported} if libpmix cannot be loaded or no launcher answers.
  Pmix();
  ~Pmix();
  Pmix(const Pmix&) = delete;

  Rank size() const;
  void put(const std::string& key, const std::string& value);
  // Waits for what `rank` put; throws Error{peer_lost} naming the rank after `patience`.
  std::string get(Rank rank, const std::string& key, Nanoseconds patience);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace shoal::net
