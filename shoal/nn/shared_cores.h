// How many members of a machine each of its cores has to serve, by what members tell each other: where they share cores no iteration is shorter than
// what all of them compute in it over the cores that they have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "shoal/core/host.h"

namespace shoal::nn {

// Values; threads: one at a time.
class SharedCores {
 public:
  // What a member tells: its machine, and the cores that it may run on. One word.
  static std::string of(const std::string& machine, const std::vector<int>& cores) {
    std::string word = machine + ':';
    for (const int core : cores) word += std::to_string(core) + ',';
    return word;
  }
  static std::string own() { return of(boot_id(), usable_cores()); }

  static std::string machine_of(const std::string& word) { return word.substr(0, word.find(':') + 1); }

  explicit SharedCores(const std::string& own) : machine_(machine_of(own)) {}
  // A member that computes, this one among them; what it computes in an iteration, and what that takes of processors: seconds, 0 where it does not say.
  void hears(const std::string& word, double computing = 0, double processor = 0) {
    if (!word.starts_with(machine_)) return;
    ++members_;
    computing_ += computing;
    processor_ += processor;
    std::istringstream cores(word.substr(machine_.size()));
    for (std::string core; std::getline(cores, core, ',');) cores_.insert(core);
  }
  // What a mean among so many takes of an iteration, however well it hides, where no core is left for it: all members of the machine have its messages to
  // send and to receive.
  double operation_seconds(std::size_t members) const {
    return leave_one_idle() ? 0 : members_a_core() * 2 * static_cast<double>(members - 1) * kMessage;
  }
  bool crowded() const { return members_a_core() > 1 && !leave_one_idle(); }
  double members_a_core() const { return static_cast<double>(members_) / static_cast<double>(std::max<std::size_t>(1, cores_.size())); }

 private:
  // They need not have a core each: they may wait, for a device or for their input, where they seem to compute.
  bool leave_one_idle() const { return members_a_core() < 1 || (processor_ > 0 && processor_ * members_a_core() < kBusy * computing_); }

  static constexpr double kBusy = 0.9;  // of the cores, while members compute
  // Of a processor's time, for one member: of four on two cores 57 more operations made a step of 495 ms 33 ms longer, so at least that (docs/training-measured.md).
  static constexpr double kMessage = 30e-6;

  std::string machine_;
  std::size_t members_ = 0;
  double computing_ = 0, processor_ = 0;
  std::set<std::string> cores_;
};

}  // namespace shoal::nn
