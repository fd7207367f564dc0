// What all members that compute tell of their pace, machine by machine, and what of it a plan is chosen by. Members of a machine have its cores in turns, and one
// of them alone says little: of a machine the mean counts, and of machines the slowest, for whom all others wait. Every member hears the same lines. Who only
// serves is not among them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "shoal/core/host.h"
#include "shoal/exchange/planner.h"
#include "shoal/exchange/took.h"

namespace shoal::nn {

struct MemberPace {
  exchange::Took took{};    // usually, of an iteration
  double a_flop = 0;        // seconds, of a product of others' rows; 0: not measured
  double own_flop = 0;      // likewise, of the product of own rows
  bool links_pack = false;  // any of its links does (core/packed_words.h)
  std::string machine{};
  std::vector<int> cores{};

  static MemberPace here(const exchange::Took& took, double a_flop, double own_flop, bool links_pack) {
    return {took, a_flop, own_flop, links_pack, boot_id(), usable_cores()};
  }
  std::string line() const {
    std::ostringstream words;
    words.precision(std::numeric_limits<double>::max_digits10);
    words << took.forward << ' ' << took.backward << ' ' << took.between << ' ' << took.processor << ' ' << took.waited << ' ' << a_flop << ' ' << own_flop << ' ' << links_pack << ' '
          << machine;
    for (const int core : cores) words << ' ' << core;
    return words.str();
  }
  static MemberPace of(const std::string& line) {
    MemberPace pace;
    std::istringstream words(line);
    words >> pace.took.forward >> pace.took.backward >> pace.took.between >> pace.took.processor >> pace.took.waited >> pace.a_flop >> pace.own_flop >> pace.links_pack >>
        pace.machine;
    for (int core = 0; words >> core;) pace.cores.push_back(core);
    return pace;
  }
};

// Members that share cores: no iteration is shorter than what all of them compute in it over the cores that they have.
class Machine {
 public:
  void hears(const MemberPace& member) {
    ++members_;
    cores_.insert(member.cores.begin(), member.cores.end());
    if (member.a_flop > 0) a_flop_ += member.a_flop, own_flop_ += member.own_flop, ++multiplying_;
    if (member.took.forward + member.took.backward <= 0) return;  // out of data
    ++computing_;
    sum_.forward += member.took.forward, sum_.backward += member.took.backward, sum_.between += member.took.between;
    sum_.processor += member.took.processor, sum_.waited += member.took.waited;
  }

  exchange::Took mean() const {
    const double members = std::max<double>(1, static_cast<double>(computing_));
    return {sum_.forward / members, sum_.backward / members, sum_.between / members, sum_.processor / members};
  }
  double a_flop() const { return mean_of_multiplying(a_flop_); }
  double own_flop() const { return mean_of_multiplying(own_flop_); }
  // What an iteration takes at least: all that its members compute, over their cores.
  double processor_seconds() const { return mean().processor * members_a_core(); }
  double members_a_core() const { return static_cast<double>(members_) / static_cast<double>(std::max<std::size_t>(1, cores_.size())); }
  bool crowded() const { return members_a_core() > 1 && !leave_one_idle(); }
  // What each parameter takes of an iteration in which it is stepped by itself. With a core each, half of that passes while the member waits.
  double parameter_seconds() const { return kParameter * (crowded() ? members_a_core() : 0.5); }
  // What a mean among so many takes of an iteration, however well it hides, where no core is left for it: all members of the machine have its messages to
  // send and to receive.
  double operation_seconds(std::size_t members) const {
    return leave_one_idle() ? 0 : members_a_core() * 2 * static_cast<double>(members - 1) * kMessage;
  }

 private:
  // They need not have a core each: they may wait, for a device or for their input, where they seem to compute. Or they wait for the network most of the time, in
  // which all is done that messages take.
  bool leave_one_idle() const {
    const double busy = sum_.processor * members_a_core();
    return members_a_core() < 1 || (busy > 0 && (busy < kBusy * sum_.seconds() || busy < kBusyInAll * (sum_.seconds() + sum_.waited)));
  }

  double mean_of_multiplying(double sum) const { return sum / static_cast<double>(std::max<std::size_t>(1, multiplying_)); }

  static constexpr double kBusy = 0.9;       // of the cores, while members compute
  static constexpr double kBusyInAll = 0.5;  // likewise, of an iteration
  // Of a processor's time, for one member: of four on two cores 57 more operations made a step of 495 ms 33 ms longer, so at least that (docs/training-measured.md).
  static constexpr double kMessage = 30e-6;
  // Likewise: steps of three small models took 66 to 110 us longer for each parameter of four members on two cores, up to 15 with a core each.
  static constexpr double kParameter = 40e-6;

  exchange::Took sum_;  // of those that compute
  double a_flop_ = 0, own_flop_ = 0;
  std::size_t members_ = 0, computing_ = 0, multiplying_ = 0;
  std::set<int> cores_;
};

class Paces {
 public:
  void hears(const std::string& line) {
    const auto member = MemberPace::of(line);
    machines_[member.machine].hears(member);
    links_pack_ = links_pack_ || member.links_pack;
    ++members_;
  }

  // The passes of the slowest machine; of products the rate of the slowest, which may be another; and whatever any machine's cores cost.
  exchange::Compute compute() const {
    exchange::Compute compute;
    double longest = 0, a_flop = 0, own_flop = 0;
    for (const auto& [name, machine] : machines_) {
      a_flop = std::max(a_flop, machine.a_flop());
      own_flop = std::max(own_flop, machine.own_flop());
      compute.operation_seconds = std::max(compute.operation_seconds, machine.operation_seconds(members_));
      compute.crowded = compute.crowded || machine.crowded();
      compute.processor_seconds = std::max(compute.processor_seconds, machine.processor_seconds());
      compute.parameter_seconds = std::max(compute.parameter_seconds, machine.parameter_seconds());
      const auto took = machine.mean();
      if (took.seconds() <= longest) continue;
      longest = took.seconds();
      compute.forward_seconds = took.forward;
      compute.backward_seconds = took.backward;
      compute.step_seconds = took.between;
    }
    compute.multiply_rate = a_flop > 0 ? 1 / a_flop : 0;
    compute.own_rate = own_flop > 0 ? 1 / own_flop : 0;
    return compute;
  }
  // 0 on a machine of which no member computes.
  double members_a_core(const std::string& machine) const {
    const auto found = machines_.find(machine);
    return found == machines_.end() ? 0 : found->second.members_a_core();
  }
  // Those between hosts, if any do: members of one host have others, and the plan is of the slow ones.
  bool links_pack() const { return links_pack_; }

 private:
  std::map<std::string, Machine> machines_;
  std::size_t members_ = 0;
  bool links_pack_ = false;
};

}  // namespace shoal::nn
