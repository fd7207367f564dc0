#include "shoal/nn/coming.h"

#include <cstdio>
#include <utility>

namespace shoal::nn {

void Coming::begin(const net::Place& before, std::vector<net::Rank> lost) {
  under_way_ = true;
  thread_ = std::jthread([this, before, lost = std::move(lost)](const std::stop_token& stop) {
    try {
      auto job = join_(before, lost, stop);
      const std::lock_guard lock(guard_);
      job_ = std::move(job);
    } catch (const Error& error) {
      if (error.code() != Code::cancelled) std::fprintf(stderr, "shoal: %s; those who are left go on\n", error.fact().c_str());
      under_way_ = false;
    }
  });
}

std::unique_ptr<net::Job> Coming::take() {
  std::unique_ptr<net::Job> job;
  {
    const std::lock_guard lock(guard_);
    job = std::move(job_);
  }
  if (job) under_way_ = false;
  return job;
}

}  // namespace shoal::nn
