// Data-parallel training of one model: every gradient that autograd produces goes into the exchange at once, every `.grad`
// becomes the mean over all members before anybody reads it or the optimizer uses it.
//
// An iteration, as the wrapper in Python (or a libtorch program) drives it:
//   forward_begins(samples); y = model(x); forward_ends(); watch(y)
//   y.backward()       -> begin, produced, absent                      [hooks]
//   install(i)         -> one `.grad` is read early: wait for its gate, install the mean   (optional)
//   Between passes whose gradients accumulate here only (no_sync), install(i) or finish() first: a layer's pairs are multiplied then, not before.
//   finish()           -> all gates are awaited, all means installed, buffers follow
//   optimizer.step()
//   commit()           -> the step is taken
// Or parameter by parameter, so that the next forward pass begins while deep layers are on the wire (P3: Jayarajan et al., MLSys 2019):
//   step_begins()      -> what must be settled before any parameter is stepped: buffers follow, what members ask is known
//   arrived()          -> whose means are here;  settle(i), update_begins(), a step of parameter i alone, update_ends()
//   commit()           -> all of them are stepped
// Of layers that the plan divides (exchange/strips.h) a member has its strip's mean alone: .grad stays undefined, own_mean() has it, and who makes
// .grad whole fetches the others' (python/shoal/divided.py). data_parallel_strips.cc is that half. So it is where members step parts of parameters
// (exchange/owned_parts.h): data_parallel_parts.cc.
//
// States of an iteration:  idle -> (first gradient) open -> (end of backward) ended -> (finish) installed -> (commit) idle;
// or from ended -> (step_begins) stepping -> (commit) idle.
// Where the job goes on without lost members (session.h) finish() is done by all that are left, or by none: contributions are kept until then, and
// when somebody was lost they travel again among the others. data_parallel_losses.cc is that part. data_parallel_idle.cc is of members without data.
// A second backward pass before commit() first completes the open iteration, so that it adds to the mean; while stepping, by step_the_rest.
// After an error nothing works any more: every call throws it again.
//
// Threads: one at a time: the caller's, or those of autograd that run backward meanwhile, one for each device, which take turns at the hooks. Gradients of a
// device leave from the thread that looks after their copies (staging.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shoal/core/event.h"
#include "shoal/core/time.h"
#include "shoal/exchange/buffer.h"
#include "shoal/exchange/drift.h"
#include "shoal/exchange/exchange.h"
#include "shoal/exchange/owned_parts.h"
#include "shoal/exchange/planner.h"
#include "shoal/nn/divided_linear.h"
#include "shoal/nn/factored_linear.h"
#include "shoal/nn/followed_buffers.h"
#include "shoal/nn/gradient_places.h"
#include "shoal/nn/gradient_hooks.h"
#include "shoal/nn/kept.h"
#include "shoal/nn/layer_group.h"
#include "shoal/nn/layer_pairs.h"
#include "shoal/nn/pace.h"
#include "shoal/nn/session.h"
#include "shoal/nn/staging.h"
#include "shoal/nn/tables.h"
#include "shoal/nn/tensors.h"

namespace shoal::nn {

class Paces;

class DataParallel final : private GradientListener, private PairListener, private StripListener {
 public:
  struct Options {
    exchange::Choice choice;                     // how a plan is chosen after the first iterations, from measured figures
    std::optional<exchange::ExchangePlan> plan;  // the saved one that the choice names: replayed
    std::vector<c10::DeviceIndex> pretend_devices;  // for tests: the CPU as these devices (staging.h), on which parameters lie in turns; none: as itself
    std::vector<Table> tables;                   // parameters of which a pass may touch few rows
    // Turns an Error into what may be thrown through autograd (Python: its own exception). Default: throw.
    std::function<void(const Error&)> raise;
    // Steps every parameter that waits for its step, and commits. Called where a pass begins while some wait.
    std::function<void()> step_the_rest;
    // Makes `.grad` whole of divided layers that still have the mean of an iteration before. Called where the next begins: it adds to that.
    std::function<void()> whole_gradients;
    // From here until the step `.grad` may be this member's own, or be read by the exchange: whoever reads it is to install() first. Called where a
    // backward pass begins an iteration, also that of a forward pass which came past forward_begins().
    std::function<void()> iteration_begins;
    // Everything beside the parameters that steps depend on becomes that of this member (the optimizer's state), on all members at once.
    std::function<void(net::Rank)> take_over_state;
  };
  // More than one member. Only parameters that require a gradient and have elements. The session outlives us.
  DataParallel(Session& session, std::vector<NamedTensor> parameters, std::vector<at::Tensor> buffers, Options options);
  ~DataParallel() override;

  // Of each parameter, as observed: its place in forward order (0: needed first), and which part of a forward pass lies before it.
  void set_first_use(std::vector<std::pair<std::uint32_t, double>> first_use);
  // Before a forward pass, if it is the first since a step: moves on with the session (Session::move_on()).
  void move_on();
  void forward_begins(double samples);
  void forward_ends();
  void watch(const at::Tensor& output);
  // Of parameter i, for factored_linear() in place of the fully connected layer that it is the weight of: then the plan may send its factors.
  at::Tensor layer(std::size_t i) const { return pair_names_.name(i); }
  // In place of a layer that is divided: all members of its group call it together, and its backward pass, too. count_rows() says first whether they
  // do; where it gives nothing, each computes it whole.
  std::optional<RowCounts> count_rows(std::size_t i, std::int64_t rows);
  at::Tensor divided_linear(std::size_t i, const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                            const RowCounts& rows) const {
    return nn::divided_linear(strip_link_, i, x, weight, bias, rows);
  }
  // Weights of layers that a plan may divide, from the next choice of a plan on, if all members say so.
  void set_divisible(const std::vector<std::size_t>& parameters);
  // Parameters whose optimizer treats each element by itself, likewise: a plan may leave to each member a part to step (exchange/owned_parts.h).
  void set_by_element(const std::vector<std::size_t>& parameters);
  std::vector<std::size_t> divided() const;               // of both kinds, in ascending order
  bool is_owned(std::size_t parameter) const { return owned_.contains(parameter); }
  exchange::OwnedParts parts(std::size_t parameter) const { return owned_.at(parameter).parts; }
  // Of a parameter in parts: the own one is stepped, and goes to all. Until returned() the others' are as they were, or new.
  void give_back(std::size_t parameter);
  void returned(std::size_t parameter);
  exchange::Strips strips(std::size_t parameter) const { return divided_.at(parameter).strips; }  // of a divided one
  at::Tensor own_mean(std::size_t parameter) const;       // of the own strip or part; undefined where nobody had a gradient
  // From here on no layer and no parameter is divided, on all members after the same iteration. Their weights are whole again: the caller has seen to that.
  void undivide();
  bool synchronizes() const { return synchronize_; }
  void set_synchronize(bool on) { synchronize_ = on; }    // off: gradients accumulate here only (no_sync)
  void set_samples(double samples);                       // this member's weight in this iteration, instead of what forward counted

  std::vector<double> weights();  // all members' in the open iteration, by rank; waits for them

  // Bits that this member asks of all in the iterations that begin from now on. asked() gives, on all members after the same iteration,
  // what any of them asked since the last call.
  void set_asks(std::uint64_t bits) { asks_ = bits; }
  std::uint64_t asked();
  // Before the first iteration: goes on where a run of as many members stopped after `iterations`. `plan` is the one it had chosen, if it
  // had: then the means have the bits that they would have had there.
  void continue_from(std::uint64_t iterations, std::optional<exchange::ExchangePlan> plan);

  // Where the means stand: what a member that came in place of a lost one takes up from another, between two iterations or before the open one is done
  // there. Then both go on with the same bits.
  struct Course {
    std::uint64_t iterations_before = 0, iteration = 0, measured_iterations = 0;
    bool plan_is_final = false;
    exchange::ExchangePlan plan;
  };
  Course course() const;
  void set_buffers(std::vector<at::Tensor> buffers) { buffers_.become(std::move(buffers)); }  // where a module has others now, of the same shapes; before finish() or step_begins()
  const std::vector<at::Tensor>& common_buffers() const { return buffers_.common(); }  // in the order given
  void take_up(const Course& course);  // before the first iteration. Throws Error{mismatch, invalid_argument} where the plan is of another model

  // What lossy ways remember from one iteration to the next, of this member, by name. Between two iterations; the tensors are views of it
  // until the plan changes. put_back() takes over those that this plan remembers, too.
  std::map<std::string, at::Tensor> kept() { return kept_of(*exchange_); }
  void put_back(const std::map<std::string, at::Tensor>& kept) { put_back_kept(*exchange_, kept); }

  // Has the plan fitted to the links anew, by all members after the same iteration: it gives the same bits (exchange/drift.h). Rank 0 asks
  // by itself when what it waits for has changed for good. Not while a saved plan is replayed.
  void ask_for_fit() { wants_fit_ = !options_.plan; }

  bool is_open() const { return open_; }
  bool install(std::size_t parameter);  // true: the first such read in this iteration
  bool holds_pairs() const;             // some `.grad` is not the local sum before install()
  void finish();
  bool needs_whole_step() const { return fit_asked_ || replicas_differ_ || session_.outlives_losses(); }  // the next step is to be whole: all members have something to do together
  void step_begins();
  std::vector<std::uint32_t> aliased() const;  // parameters whose memory something else holds: a view, a detached copy
  std::vector<std::uint32_t> arrived() const;  // parameters whose means are here, installed or not; waits for nothing
  void settle(std::size_t parameter);
  void update_begins() { update_began_ = steady_now(); }
  void update_ends();
  void commit();
  // One iteration without data (join). False: no member has any left, nothing happened.
  bool idle_iteration();
  // On a member that only serves (Session::serves()): takes part in one iteration of the workers'. False: there will be no more.
  bool serve();
  // On all workers, when they train no more: an iteration without data tells the servers.
  void dismiss_servers();
  void end();  // takes no step any more (Exchange::end())
  std::optional<net::Rank> take_over_from() { return buffers_.take_over_from(); }

  // Sums over iterations, seconds: from the first gradient produced to the last mean, and what of it the caller waited.
  struct Communication {
    double whole = 0, exposed = 0;
  };
  Communication communication() const { return communication_; }

  const exchange::ExchangePlan& plan() const { return exchange_->plan(); }
  std::uint64_t iterations_taken() const { return exchange_->before() + exchange_->iteration(); }  // also by the run that this one continues
  bool plan_is_final() const { return plan_is_final_; }
  std::uint64_t fits() const { return fits_; }            // how often the plan was fitted anew
  // How often the plan in use has changed, or what it predicts: from iterations that went by it, from some after it was taken on (not where it is replayed, or
  // parameters lie on a device).
  std::uint64_t plans() const { return plans_; }

 private:
  void backward_starts() override;
  void before_accumulation(std::size_t i) override;
  void after_accumulation(std::size_t i) override;
  bool wants_pair(std::size_t i, const at::Tensor& x, const at::Tensor& g, bool goes_on) override;
  void take_pair(std::size_t i, const at::Tensor& x, const at::Tensor& g) override;
  at::Tensor forward_in_strips(Call& call, const at::Tensor& x) override;
  at::Tensor backward_in_strips(const Call& call, const at::Tensor& g, bool weight) override;
  void backward_ends();
  void guard(const std::function<void()>& step);

  void pass_opens();
  void begin(double weight);
  void complete();
  void expect_end_of_pass();
  void account(std::size_t i, bool even_zeros);
  void contribute(std::size_t i);
  void hand_over(const std::function<void()>& give);
  void take_plan(exchange::ExchangePlan plan);
  void take_for_good(exchange::ExchangePlan plan);
  void make_exchange(exchange::ExchangePlan plan, std::uint64_t iteration, std::uint64_t before);
  void begin_again_after_loss();
  void account_pair(std::size_t i);
  at::ScalarType type_of_rows(std::size_t i) const;
  void account_strip(std::size_t i);
  void leave(std::size_t i, const std::vector<at::Tensor*>& parts, std::function<void()> produce);
  void account_rest();
  void install_mean(std::size_t i);
  std::vector<std::uint32_t> in_order_of_arrival() const;  // as the plan has it
  void multiply_held(std::size_t i);
  void multiply_all_held();
  void install_strip(std::size_t i);
  void install_part(std::size_t i);
  at::Tensor gradients_of(const Call& call, const at::Tensor& g, bool weight);
  void add_to_strip(const Call& call, const at::Tensor& g);
  void answer_calls_after(std::uint64_t number);
  bool is_called(std::size_t i) const;  // a gradient of its strip may still come in this pass
  void next_round();
  void agree_on_division(std::vector<exchange::TensorSpec>& specs) const;
  void require_divisible(const exchange::ExchangePlan& plan) const;
  bool divides_only_divisible(const exchange::ExchangePlan& plan) const;
  std::unique_ptr<GradientPlaces> places_where_memory_is_shared() const;
  void follow_placement();
  void say_placement();
  void follow_division();
  void waited_for_group(std::size_t i, Instant since);
  double waited() const { return exchange_->waited() + waited_besides_; }  // seconds that this member has stood still so far
  void close_iteration();
  exchange::Told told() const;
  void finish_buffers();
  void hear_asks();
  void require_equal_steps() const;
  bool digest_is_due() const;
  std::uint64_t digest() const;
  void compare_replicas();
  void mend_replicas();
  Paces paces_of_all(const MultiplyRates& rates);
  void choose_plan();
  void follow_links(bool together);
  bool looks_at_means() const;
  void settle_from_here();
  void settle_plan();
  MultiplyRates describe_layers(std::vector<exchange::TensorSpec>& specs) const;
  void require_unchanged(std::size_t i) const;
  at::Tensor contribution(std::size_t i) const;
  void record(EventKind kind, Instant begin, Instant end, std::size_t i, double value) const;
  void note(const std::string& line) const;  // for the report, at this iteration

  Session& session_;
  const std::vector<NamedTensor> parameters_;
  std::shared_ptr<const void> group_;      // of the session, over which buffers_ and exchange_ go
  FollowedBuffers buffers_;
  const Options options_;
  std::vector<at::Tensor> contributions_;  // kept until commit: the exchange reads them, so they outlive it
  LayerPairs pairs_;
  Tables tables_;
  const std::unique_ptr<GradientPlaces> places_;  // where members of this host share memory
  std::uint64_t says_placement_at_ = 0;    // the iteration after which the report hears where gradients lie; 0: not again
  std::recursive_mutex hooks_turn_;  // of autograd's threads; what a hook calls may call another
  std::mutex leaving_;  // guards what leaves (produced(), absent(), contributions_, pairs_, tables_, backward_at_) from staging's thread
  struct Divided {
    exchange::Strips strips;
    LayerGroup* group = nullptr;
    at::Tensor gradient, mean;  // of the own strip: this iteration's sum over the group's rows; the newest mean
  };
  struct Owned {
    exchange::OwnedParts parts;
    at::Tensor mean;              // of the own part: the newest
    at::Tensor given, whole;      // what is on its way to the others, and where theirs come; undefined: nothing is
  };
  std::vector<bool> divisible_, by_element_;
  std::map<std::size_t, Divided> divided_;
  std::map<std::size_t, Owned> owned_;
  std::map<std::uint32_t, std::unique_ptr<LayerGroup>> layer_groups_;  // by how many there are
  std::vector<Call> calls_;     // made in a forward pass, that no backward pass of ours has reached yet
  std::uint64_t last_call_ = 0;
  c10::intrusive_ptr<StripLink> strip_link_ = c10::make_intrusive<StripLink>();
  const std::uint16_t channel_;
  std::unique_ptr<exchange::Exchange> exchange_;  // of the members that are left
  std::shared_ptr<const collective::KnownNetwork> network_of_all_;  // the plan's, before any was lost
  std::uint64_t generation_ = 0;                  // the session's, for which it was made
  std::map<std::size_t, at::Tensor> replaced_;    // .grad where a mean has been installed, until the step is taken: a loss may undo it

  const PairNames pair_names_;

  bool synchronize_ = true;
  bool open_ = false, ended_ = false, finished_ = false, stepping_ = false, read_early_ = false;
  std::vector<bool> accounted_, installed_;
  double weight_ = 0;

  double samples_ = 1;                     // counted by forward since the last iteration began
  bool samples_are_spent_ = true;          // an iteration has begun with them: the next forward counts anew
  std::optional<double> declared_samples_;
  std::uint64_t asks_ = 0, asked_ = 0;
  enum class Behind : std::uint8_t { unknown, step, pass } behind_ = Behind::unknown;  // what the open iteration, or the next one, comes behind

  int pass_ = -1;                          // graph task of the backward pass that opened this iteration
  int callback_in_ = -1;                   // graph task that will call backward_ends()

  // Measured for the plan and the report; seconds.
  bool plan_is_final_ = false;
  std::optional<exchange::Drift> drift_;   // rank 0's, of a plan that may be fitted
  bool wants_fit_ = false, has_drifted_ = false;       // this member asks for it, to links measured anew or as they were seen
  bool fit_asked_ = false, measure_asked_ = false;     // somebody did
  std::optional<collective::LinkModel> links_now_;     // to which the plan was fitted; programs of its parts may still be chosen by others (plan().link)
  bool replicas_differ_ = false;
  bool dismisses_ = false, over_ = false;  // what this worker says to the servers; what the latest iteration said to them
  std::uint64_t fits_ = 0, plans_ = 0;
  std::uint64_t settled_from_ = 0, settles_at_ = 0;  // the plan's first iteration, and that after which it next predicts from those that it has had; 0: never
  double exposed_before_ = 0;              // the sum when the last iteration ended
  double waited_for_weights_ = 0;          // since the last look at what is waited, and no part of what is exposed
  std::uint64_t measured_iterations_;      // before the plan is chosen, less those of a run that this one continues
  std::vector<std::pair<std::uint32_t, double>> first_use_;  // and the part of forward before it; -1: nobody can wait there
  double waited_besides_ = 0;              // for those among whom layers are divided, and for buffers
  double waited_before_pass_ = 0;          // of waited(), when the forward or backward pass began
  Instant forward_began_{}, backward_began_{}, first_gradient_at_{}, update_began_{};
  Communication communication_;
  Pace pace_;
  double members_a_core_ = 0;              // of this machine; 0: not known
  std::vector<double> backward_at_;
  std::vector<double> mean_wire_share_;        // the share of its bytes that it takes packed (core/packed_words.h), as last looked at
  std::vector<std::uint32_t> event_names_;

  std::unique_ptr<GradientHooks> hooks_;   // gone before what it calls
  std::vector<std::unique_ptr<Staging>> stagings_;  // one a device; last: what it has under way comes to its end first
  std::vector<Staging*> staging_;          // of a parameter; nullptr: its gradients lie on the host
};

}  // namespace shoal::nn
