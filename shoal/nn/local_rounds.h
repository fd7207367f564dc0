// Training with local steps: every member steps by itself, and now and then all come together (exchange::Rounds).
//
// What travels is the difference of a parameter to its value at the last synchronisation, which all members have alike: old - own. The mean
// of these is the outer gradient g (DiLoCo, arXiv 2311.08105, algorithm 1), weighted by the samples since then:
//   v <- MOMENTUM v + g;   old <- old - RATE (g + MOMENTUM v)      Nesterov's, as torch.optim.SGD has it; the same bits on all members
// Local SGD is RATE 1 and MOMENTUM 0: old <- old - g, the mean of all parameters. Floating-point buffers are averaged so by either.
//
// One fragment of the model at a time:
//   start    in its turn: the difference leaves. What the parameters are now is noted
//   land     at once where there is one fragment; else when the next one starts, steps being taken meanwhile:
//              parameter <- old + (parameter - noted), so that no step taken meanwhile is lost; the next difference has it, too
//
// States:  idle -> (start) under way -> (hold: its mean is here) held -> (land) idle. A member that fails leaves the others as they were
// before land: they have all of their own steps.
//
// Threads: one at a time, the caller's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/exchange/exchange.h"
#include "shoal/nn/followed_buffers.h"
#include "shoal/nn/session.h"
#include "shoal/nn/tensors.h"

namespace shoal::nn {

class LocalRounds {
 public:
  struct Options {
    exchange::Choice choice;  // with rounds
    std::optional<exchange::ExchangePlan> plan;  // the saved one that the choice names: replayed
  };
  // More than one member, all with the same values. parameters: that are trained. Buffers without fractions follow one member's.
  LocalRounds(Session& session, const std::vector<NamedTensor>& parameters, const std::vector<NamedTensor>& buffers,
              Options options);

  void count(double samples) { counted_ = counted_.value_or(0) + samples; }  // of a forward pass; a step without any counts as one sample
  void set_samples(double samples);  // this member's weight for the coming step, instead of what was counted
  void set_asks(std::uint64_t bits) { asks_ = bits; }  // as DataParallel's
  std::uint64_t asked();

  // The optimizer has taken a step. True: a fragment was started after it.
  bool step_taken();
  // For members that take no steps for now: one synchronisation with whoever does. False: all have come to where they take none, and
  // have all parameters alike.
  bool idle_round();
  // Nothing is on its way any more; what has arrived is taken over when it would have been.
  void hold();
  // Parameters and buffers were set from outside, on all members alike: there is no difference to them.
  void begin_anew();

  // Members took part without data since the last call: then the first one that had some to the last, the same on all members.
  std::optional<net::Rank> take_over_from();
  bool idled() const { return idled_; }  // this one did

  // The values of the last synchronisation, which all members have alike, beside the tensors that they are of.
  std::vector<std::pair<at::Tensor, at::Tensor>> old_values() const;

  // What a run that goes on needs, after hold(). Views, valid until the next step.
  struct Progress {
    std::uint64_t synchronised = 0, steps = 0;  // fragments started; steps taken since the beginning, or since all were idle
    std::map<std::string, at::Tensor> shared;  // by name, all members' alike
    std::map<std::string, at::Tensor> own;
  };
  Progress progress();
  // Before the first step, by as many members as then and by the same choice; parameters and buffers are old_values() of then, and become this member's own
  // afterwards. `plan`: the one that had been chosen, if it had.
  void continue_from(const Progress& progress, std::optional<exchange::ExchangePlan> plan);

  // Sums, seconds: from a fragment's start to its last mean, and what of it the caller waited.
  struct Communication {
    double whole = 0, exposed = 0;
  };
  Communication communication() const { return communication_; }
  const exchange::ExchangePlan& plan() const { return exchange_.plan(); }
  bool plan_is_final() const { return plan_is_final_; }
  std::uint64_t synchronised() const { return synchronised_; }

 private:
  struct Averaged {
    std::string name;
    at::Tensor value;  // the parameter or buffer itself
    bool is_parameter = true;  // whose mean the outer optimizer takes
    at::Tensor old, velocity;  // velocity: undefined before the first
    at::Tensor difference;  // under way: on the host, as the exchange reads it
    at::Tensor noted;  // value when it started, where steps are taken meanwhile
    at::Tensor mean;  // held; undefined where nobody had data
  };

  void start(bool goes_on);
  void land();
  void take_over(Averaged& t);
  at::Tensor mean_of(std::uint32_t tensor);
  std::vector<std::uint32_t> tensors_in(std::uint32_t turn) const;
  void choose_plan();

  Session& session_;
  std::vector<Averaged> tensors_;
  FollowedBuffers followed_;
  const Options options_;
  exchange::Rounds rounds_;
  exchange::Exchange exchange_;

  std::optional<double> counted_, declared_;  // since the last step
  double samples_ = 0;  // of all steps
  std::vector<double> samples_then_;  // by turn: `samples_` when it last started
  std::uint64_t asks_ = 0, asked_ = 0;

  std::uint64_t steps_ = 0, synchronised_ = 0;
  bool under_way_ = false, held_ = false;
  double weight_ = 0;  // in the fragment under way
  std::uint32_t turn_ = 0;  // of the fragment under way or held
  std::uint32_t without_steps_ = 0;  // synchronisations in a row in which nobody went on
  bool somebody_idled_ = false, idled_ = false;
  net::Rank first_active_ = 0;

  bool plan_is_final_ = false;
  Instant started_at_{};
  Communication communication_;
};

}  // namespace shoal::nn
