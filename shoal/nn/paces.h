// What all members tell of their pace, and what of it a plan is chosen by. Members of a machine have its cores in turns, and one of them alone says little: of
// a machine the mean counts, and of machines the slowest, for whom all others wait.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>
#include <string>

#include "shoal/exchange/planner.h"
#include "shoal/nn/shared_cores.h"

namespace shoal::nn {

// Values; threads: one at a time.
class Paces {
 public:
  struct Member {  // seconds
    double forward = 0, backward = 0, between = 0, processor = 0;  // as Pace has them
    double a_flop = 0;                                             // of a product of others' rows; 0: not measured
    std::string cores;                                             // SharedCores::own()
  };
  static std::string told(const Member& own) {
    std::ostringstream line;
    line.precision(std::numeric_limits<double>::max_digits10);
    line << own.forward << ' ' << own.backward << ' ' << own.between << ' ' << own.processor << ' ' << own.a_flop << ' ' << own.cores;
    return line.str();
  }

  void hears(const std::string& line) {  // each member's, the own one among them
    std::istringstream words(line);
    Member m;
    words >> m.forward >> m.backward >> m.between >> m.processor >> m.a_flop >> m.cores;
    auto& [cores, sum, members] = machines_.try_emplace(SharedCores::machine_of(m.cores), Machine{SharedCores(m.cores)}).first->second;
    cores.hears(m.cores, m.forward + m.backward + m.between, m.processor);
    sum.forward += m.forward, sum.backward += m.backward, sum.between += m.between, sum.a_flop += m.a_flop;
    ++members, ++members_;
  }

  exchange::Compute of_slowest() const {
    exchange::Compute compute;
    for (const auto& [word, machine] : machines_) {
      const auto& [cores, sum, members] = machine;
      compute.operation_seconds = std::max(compute.operation_seconds, cores.operation_seconds(members_));
      compute.crowded = compute.crowded || cores.crowded();
      if ((sum.forward + sum.backward) / members <= compute.forward_seconds + compute.backward_seconds) continue;
      compute.forward_seconds = sum.forward / members;
      compute.backward_seconds = sum.backward / members;
      compute.step_seconds = sum.between / members;
      compute.multiply_rate = sum.a_flop > 0 ? members / sum.a_flop : 0;
    }
    return compute;
  }
  // 0 on a machine of which no member computes: of one that only serves.
  double members_a_core(const std::string& own_cores) const {
    const auto here = machines_.find(SharedCores::machine_of(own_cores));
    return here == machines_.end() ? 0 : here->second.cores.members_a_core();
  }

 private:
  struct Machine {
    SharedCores cores;
    Member sum{};
    double members = 0;
  };
  std::map<std::string, Machine> machines_;
  std::size_t members_ = 0;
};

}  // namespace shoal::nn
