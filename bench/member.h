// What the members of a benchmark have in common: their start on this machine, sums over all of them, CPU seconds.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "shoal/collective/build.h"
#include "shoal/collective/run.h"
#include "shoal/core/error.h"
#include "shoal/core/host.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/job.h"

namespace shoal::bench {

using shoal::cpu_seconds;

// All members together: they call alike.
class Together {
 public:
  explicit Together(net::Transport& transport) : runner_(transport, everybody(transport.size())) {}
  collective::Runner& runner() { return runner_; }
  // Numbers of operations that nobody has used; all members count alike.
  std::uint64_t next(std::uint64_t operations) { return std::exchange(operation_, operation_ + operations); }
  // Waits for everybody.
  double total(double mine) {
    const auto plan = collective::verify(collective::build(collective::Collective::all_reduce, "gather", runner_.size()));
    double sum = 0;
    collective::Run run;
    run.type = DType::f64;
    run.operation = next(1);
    run.label = "sum of figures";
    runner_.run(plan, collective::Layout::even(plan.program(), runner_.rank(), 1),
                {reinterpret_cast<const std::byte*>(&mine), reinterpret_cast<std::byte*>(&sum)}, run,
                runner_.transport().now() + std::chrono::seconds(300));
    return sum;
  }

 private:
  static std::vector<net::Rank> everybody(net::Rank size) {
    std::vector<net::Rank> members(size);
    std::iota(members.begin(), members.end(), 0);
    return members;
  }

  collective::Runner runner_;
  std::uint64_t operation_ = net::operation_in(1, 1);
};

// Starts `count` members as children of this process, which holds the place where they meet; each finds SHOAL_RANK set. The exit status
// of the worst.
inline int run_local(std::uint32_t count, char** argv) {
  const char* const secret = "a benchmark on this machine alone";
  net::Coordinator coordinator(secret, "127.0.0.1:0");
  ::setenv("SHOAL_SECRET", secret, 1);
  ::setenv("SHOAL_COORD", coordinator.address().c_str(), 1);
  ::setenv("SHOAL_SIZE", std::to_string(count).c_str(), 1);
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    ::setenv("SHOAL_RANK", std::to_string(rank).c_str(), 1);  // before fork: after it only exec is safe
    const pid_t child = ::fork();
    if (child == 0) {
      ::execv("/proc/self/exe", argv);
      ::_exit(127);
    }
    children.push_back(child);
  }
  int worst = 0;
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  return worst;
}

// The end of a benchmark's main(): one member, or with `local` as many of them on this machine. Errors in a line with the program's name.
inline int run(const char* program, std::uint32_t local, char** argv, const std::function<int()>& member) {
  try {
    const bool is_member = std::getenv("SHOAL_RANK") != nullptr;
    return local > 0 && !is_member ? run_local(local, argv) : member();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return exit_code(error.code());
  }
}

}  // namespace shoal::bench
