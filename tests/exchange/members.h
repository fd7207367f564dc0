// The members of a scripted job, each with its own exchange, all on one thread.
#pragma once

#include <memory>
#include <numeric>
#include <vector>

#include "shoal/exchange/exchange.h"
#include "shoal/net/inproc.h"

namespace shoal::exchange {

class Members {
 public:
  explicit Members(const ExchangePlan& plan, std::uint64_t seed = 1, Nanoseconds patience = std::chrono::seconds(60))
      : Members(plan, net::ScriptedNetwork{.seed = seed}, patience) {}
  Members(const ExchangePlan& plan, const net::ScriptedNetwork& network, Nanoseconds patience = std::chrono::seconds(60))
      : job_(plan.ranks, network) {
    std::vector<net::Rank> all(plan.ranks);
    std::iota(all.begin(), all.end(), 0u);
    for (std::uint32_t r = 0; r < plan.ranks; ++r) {
      runners_.push_back(std::make_unique<collective::Runner>(job_.member(r), all));
      exchanges_.push_back(std::make_unique<Exchange>(*runners_[r], std::uint16_t{16}, plan, patience));
    }
  }
  Exchange& operator[](std::size_t rank) { return *exchanges_[rank]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(exchanges_.size()); }
  net::InprocJob& job() { return job_; }
  void leave(std::size_t rank) { exchanges_[rank].reset(); }
  // Of a killed process no destructor runs: its memory stays, where the leak checker can see it.
  void kill(std::uint32_t rank) {
    static auto& killed = *new std::vector<Exchange*>;
    job_.kill(rank);
    killed.push_back(exchanges_[rank].release());
  }

 private:
  net::InprocJob job_;
  std::vector<std::unique_ptr<collective::Runner>> runners_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
};

}  // namespace shoal::exchange
