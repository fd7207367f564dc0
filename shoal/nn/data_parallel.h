// Data-parallel training of one model: every gradient that autograd produces goes into the exchange at once, every `.grad`
// becomes the mean over all members before anybody reads it or the optimizer uses it.
//
// An iteration, as the wrapper in Python (or a libtorch program) drives it:
//   forward_begins(samples); y = model(x); forward_ends(); watch(y)
//   y.backward()       -> begin, produced, absent                      [hooks]
//   install(i)         -> one `.grad` is read early: wait for its gate, install the mean   (optional)
//   finish()           -> all gates are awaited, all means installed, buffers follow
//   optimizer.step()
//   commit()           -> the step is taken
// Here later issues hang forward gates (finish() in parts, before each layer's next forward) and steps by parameter.
//
// States of an iteration:  idle -> (first gradient) open -> (end of backward) ended -> (finish) installed -> (commit) idle.
// A second backward pass before commit() first completes the open iteration, so that it adds to the mean.
// After an error nothing works any more: every call throws it again.
//
// Threads: one at a time: the caller's, which for CPU tensors also runs backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shoal/core/event.h"
#include "shoal/core/time.h"
#include "shoal/exchange/exchange.h"
#include "shoal/exchange/planner.h"
#include "shoal/nn/factored_linear.h"
#include "shoal/nn/gradient_hooks.h"
#include "shoal/nn/layer_pairs.h"
#include "shoal/nn/session.h"
#include "shoal/nn/tensors.h"

namespace shoal::nn {

class DataParallel final : private GradientListener, private PairListener {
 public:
  struct Options {
    exchange::Choice choice;                     // how a plan is chosen after the first iterations, from measured figures
    std::optional<exchange::ExchangePlan> plan;  // the saved one that the choice names: replayed
    std::uint64_t measured_iterations = 3;       // before the plan is chosen
    // Turns an Error into what may be thrown through autograd (Python: its own exception). Default: throw.
    std::function<void(const Error&)> raise;
  };
  // More than one member. Only parameters that require a gradient and have elements. The session outlives us.
  DataParallel(Session& session, std::vector<NamedTensor> parameters, std::vector<at::Tensor> buffers, Options options);
  ~DataParallel() override;

  // Forward order of the parameters (0: needed first), observed in the first pass; decides priorities.
  void set_first_use(const std::vector<std::uint32_t>& first_use);
  void forward_begins(double samples);
  void forward_ends();
  void watch(const at::Tensor& output);
  // In place of the fully connected layer that parameter i is the weight of: then the plan may send its factors.
  at::Tensor linear(std::size_t i, const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias) const {
    return factored_linear(pair_link_, i, x, weight, bias);
  }
  void set_synchronize(bool on) { synchronize_ = on; }    // off: gradients accumulate here only (no_sync)
  void set_samples(double samples);                       // this member's weight in this iteration, instead of what forward counted

  // Bits that this member asks of all in the iterations that begin from now on. asked() gives, on all members after the same iteration,
  // what any of them asked since the last call.
  void set_asks(std::uint64_t bits) { asks_ = bits; }
  std::uint64_t asked();
  // Before the first iteration: goes on where a run of as many members stopped after `iterations`. `plan` is the one it had chosen, if it
  // had: then the means have the bits that they would have had there.
  void continue_from(std::uint64_t iterations, std::optional<exchange::ExchangePlan> plan);

  bool is_open() const { return open_; }
  bool install(std::size_t parameter);  // true: the first such read in this iteration
  void finish();
  void commit();
  // One iteration without data (join). False: no member has any left, nothing happened.
  bool idle_iteration();
  // Where members must take over parameters from after a join: the first one that was active in the last iteration with data.
  // nullopt: since the last call all members were active in all of them, so that nobody lags. The same on all members.
  std::optional<net::Rank> take_over_from();

  // Sums over iterations, seconds: from the first gradient produced to the last mean, and what of it the caller waited.
  struct Communication {
    double whole = 0, exposed = 0;
  };
  Communication communication() const { return communication_; }

  const exchange::ExchangePlan& plan() const { return exchange_.plan(); }
  std::uint64_t iterations_taken() const { return iterations_before_ + exchange_.iteration(); }  // also by the run that this one continues
  bool plan_is_final() const { return plan_is_final_; }

 private:
  void backward_starts() override;
  void before_accumulation(std::size_t i) override;
  void after_accumulation(std::size_t i) override;
  bool wants_pair(std::size_t i, std::uint64_t rows) override;
  void take_pair(std::size_t i, const at::Tensor& x, const at::Tensor& g) override;
  void backward_ends();
  void guard(const std::function<void()>& step);

  void begin(double weight);
  void complete();
  void expect_end_of_pass();
  void account(std::size_t i, bool even_zeros);
  void account_pair(std::size_t i);
  void account_rest();
  void install_mean(std::size_t i);
  bool start_buffers();
  void finish_buffers();
  void close_iteration();
  void choose_plan();
  double describe_layers(std::vector<exchange::TensorSpec>& specs) const;
  at::Tensor contribution(std::size_t i) const;
  void record(EventKind kind, Instant begin, Instant end, std::size_t i, double value) const;

  Session& session_;
  const std::vector<NamedTensor> parameters_;
  const std::vector<at::Tensor> buffers_;
  const Options options_;
  std::vector<at::Tensor> contributions_;  // kept until commit: the exchange reads them, so they outlive it
  LayerPairs pairs_;
  c10::intrusive_ptr<PairLink> pair_link_ = c10::make_intrusive<PairLink>();
  exchange::Exchange exchange_;

  bool synchronize_ = true;
  bool open_ = false, ended_ = false, finished_ = false, read_early_ = false;
  std::vector<bool> accounted_, installed_;
  double weight_ = 0;

  double samples_ = 1;                     // counted by forward since the last iteration began
  bool samples_are_spent_ = true;          // an iteration has begun with them: the next forward counts anew
  std::optional<double> declared_samples_;
  std::uint64_t asks_ = 0, asked_ = 0;
  bool somebody_idled_ = false;
  net::Rank last_active_ = 0;

  int pass_ = -1;                          // graph task of the backward pass that opened this iteration
  int callback_in_ = -1;                   // graph task that will call backward_ends()

  std::vector<std::byte> packed_buffers_;
  Session::Broadcast buffers_under_way_;

  // Measured for the plan and the report; seconds.
  bool plan_is_final_ = false;
  std::uint64_t measured_iterations_, iterations_before_ = 0;
  std::vector<std::uint32_t> first_use_;
  Instant forward_began_{}, backward_began_{}, first_gradient_at_{}, finished_at_{};
  Communication communication_;
  double forward_seconds_ = 0, backward_seconds_ = 0;
  std::vector<double> backward_at_;
  std::vector<std::uint32_t> event_names_;

  std::unique_ptr<GradientHooks> hooks_;   // last: gone first
};

}  // namespace shoal::nn
