#include "shoal/nn/data_parallel.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "shoal/core/host.h"
#include "shoal/core/packed_words.h"
#include "shoal/nn/first_plan.h"

namespace shoal::nn {
namespace {

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& n : named) tensors.push_back(n.tensor);
  return tensors;
}

}  // namespace

DataParallel::DataParallel(Session& session, std::vector<NamedTensor> parameters, std::vector<at::Tensor> buffers, Options options)
    : session_(session),
      parameters_(std::move(parameters)),
      buffers_(session, std::move(buffers)),
      options_(std::move(options)),
      contributions_(parameters_.size()),
      pairs_(parameters_.size()),
      tables_(parameters_, options_.tables),
      places_(places_where_memory_is_shared()),
      divisible_(parameters_.size()),
      by_element_(parameters_.size()),
      channel_(session.new_channel()),
      pair_names_(*this, parameters_.size()),
      accounted_(parameters_.size()),
      installed_(parameters_.size()),
      measured_iterations_((options_.plan ? *options_.plan : exchange::ExchangePlan()).measured_iterations),
      first_use_(parameters_.size()),
      backward_at_(parameters_.size(), -1),
      mean_wire_share_(parameters_.size(), 1),
      hooks_(std::make_unique<GradientHooks>(static_cast<GradientListener&>(*this), tensors_of(parameters_))) {
  take_plan(first_plan(describe(parameters_, tables_), options_.choice, options_.plan, session.size(), session.servers()));
  if (exchange::parse_choice(exchange_->plan().choice, "plan").rounds) {
    throw Error(Code::unsupported, "local steps exchange no gradients", "plan", "LocalRounds takes them");
  }
  strip_link_->listener = this;
  for (std::uint32_t i = 0; i < parameters_.size(); ++i) first_use_[i] = {i, -1};
  std::unordered_map<c10::Device, Staging*> known;
  for (const auto& [name, tensor] : parameters_) {
    const auto& pretended = options_.pretend_devices;
    const c10::Device device = pretended.empty() ? tensor.device() : c10::Device(c10::kPrivateUse1, pretended[staging_.size() % pretended.size()]);
    Staging*& staging = known[device];
    if (!staging && (device.is_cuda() || device.is_privateuseone())) {
      stagings_.push_back(pretended.empty() ? Staging::of(device) : Staging::pretended(device.index()));
      staging = stagings_.back().get();
    }
    staging_.push_back(staging);
  }
  if (!stagings_.empty() && session.outlives_losses()) {
    throw Error(Code::unsupported, "parameters lie on a device", "data_parallel()", "run with --on-peer-lost fail");
  }
  for (const auto& [name, tensor] : parameters_) event_names_.push_back(Events::local().intern(name));
}

DataParallel::~DataParallel() { strip_link_->listener = nullptr; }

void DataParallel::set_first_use(std::vector<std::pair<std::uint32_t, double>> first_use) {
  if (first_use.size() == first_use_.size()) first_use_ = std::move(first_use);
}

void DataParallel::set_samples(double samples) {
  if (!(samples >= 0)) throw Error(Code::invalid_argument, "the number of samples is negative", "model.samples()");
  declared_samples_ = samples;
}

// --- forward

void DataParallel::forward_begins(double samples) {
  forward_began_ = steady_now();
  if (samples_are_spent_) {
    samples_ = 0;
    pace_.iteration_begins(forward_began_, waited(), cpu_seconds());
  }
  waited_before_pass_ = waited();
  pace_.forward_begins();
  samples_are_spent_ = false;
  samples_ += samples;
  if (places_) places_->pass_begins();  // of operators that nobody watches some run before what is watched
}

void DataParallel::forward_ends() {
  const auto now = steady_now();
  pace_.forward_took(seconds_between(forward_began_, now) - (waited() - waited_before_pass_));
  record(EventKind::forward, forward_began_, now, parameters_.size(), samples_);
}

void DataParallel::watch(const at::Tensor& output) { hooks_->watch(output); }

// --- backward, called by autograd

void DataParallel::guard(const std::function<void()>& step) {
  const std::lock_guard turn(hooks_turn_);
  if (!options_.raise) return step();
  try {
    step();
  } catch (const Error& error) {
    options_.raise(error);
  }
}

void DataParallel::backward_starts() {
  guard([this] {
    if (!synchronize_ || !hooks_->pass_stores_gradients()) return;
    const int pass = torch::autograd::get_current_graph_task_id();
    if (open_ && pass != pass_ && ended_) complete();
    pass_opens();
    expect_end_of_pass();
  });
}

void DataParallel::before_accumulation(std::size_t i) {
  guard([this, i] {
    if (!open_ || !accounted_[i]) return;
    if (!ended_) {
      throw Error(Code::unsupported, "its gradient came twice in one backward pass, the first is already on its way",
                  "parameter " + parameters_[i].name,
                  "use torch.utils.checkpoint with use_reentrant=False, or backward() inside model.no_sync() but for the last time");
    }
    complete();  // what comes next adds to the mean, as it would add to a plain gradient
  });
}

void DataParallel::after_accumulation(std::size_t i) {
  guard([this, i] {
    if (!synchronize_) return;
    pass_opens();
    const auto now = steady_now();
    backward_at_[i] = seconds_between(backward_began_, now);
    if (!is_called(i)) account(i, true);
    record(EventKind::produced, now, now, i, static_cast<double>(parameters_[i].tensor.nbytes()));
    expect_end_of_pass();
  });
}

// Reentrant checkpointing runs passes inside a pass. The end of an inner one is not the end: the next gradient of the
// outer one asks again, and finish() closes what nobody closed.
void DataParallel::expect_end_of_pass() {
  const int pass = torch::autograd::get_current_graph_task_id();
  if (pass == callback_in_) return;
  callback_in_ = pass;
  torch::autograd::Engine::get_default_engine().queue_callback([this] { backward_ends(); });
}

void DataParallel::backward_ends() {
  guard([this] {
    callback_in_ = -1;
    const bool inner = torch::autograd::get_current_node() != nullptr;
    if (!inner && open_ && !ended_) account_rest();
  });
}

// --- the iteration

// An iteration, unless one is open.
void DataParallel::pass_opens() {
  if (open_) return;
  if (options_.iteration_begins) options_.iteration_begins();
  begin(declared_samples_.value_or(samples_));
}

void DataParallel::begin(double weight) {
  if ((!divided_.empty() || !owned_.empty()) && options_.whole_gradients) options_.whole_gradients();
  weight_ = weight;
  samples_are_spent_ = true;
  pass_ = torch::autograd::get_current_graph_task_id();
  backward_began_ = steady_now();
  waited_before_pass_ = waited();
  std::fill(backward_at_.begin(), backward_at_.end(), -1);
  if (generation_ != session_.generation()) take_plan(exchange_->plan());  // members have changed in another model's step
  if (!divided_.empty()) next_round();
  hand_over([this] { exchange_->begin(weight_, told()); });
  open_ = true;
}

void DataParallel::account(std::size_t i, bool even_zeros) {
  if (first_gradient_at_ == Instant{}) first_gradient_at_ = steady_now();
  require_unchanged(i);
  accounted_[i] = true;
  if (exchange_->by_factors(static_cast<std::uint32_t>(i))) return account_pair(i);
  if (divided_.contains(i)) return account_strip(i);
  const auto gradient = weight_ > 0 ? contribution(i) : at::Tensor();
  const std::lock_guard lock(leaving_);
  if (gradient.defined() && (even_zeros || says_something(gradient))) contributions_[i] = gradient;
  if (places_ && even_zeros && gradient.defined()) places_->accumulated(i, gradient);
  if (!contributions_[i].defined() || gradient.is_sparse()) return hand_over([this, i] { contribute(i); });
  if (!plan_is_final_ && exchange_->iteration() == 0) tables_.note(i, gradient);  // once: it would lengthen the backward pass that is measured
  leave(i, {&contributions_[i]}, [this, i] { hand_over([this, i] { contribute(i); }); });
}

// Produces what lies on the host at once, else when all parts have come there, in whose places these copies then are.
void DataParallel::leave(std::size_t i, const std::vector<at::Tensor*>& parts, std::function<void()> produce) {
  if (!staging_[i]) return produce();
  const auto all_here = [this, i, produce = std::move(produce)](const std::exception_ptr& fault) {
    const std::lock_guard lock(leaving_);
    backward_at_[i] = seconds_between(backward_began_, steady_now());
    try {  // whoever waits for the mean hears of a failure
      if (fault) std::rethrow_exception(fault);
      produce();
    } catch (const Error& error) {
      exchange_->fail(error);
    } catch (const std::exception& error) {
      const std::string_view what = error.what();
      const std::string line(what.substr(0, what.find('\n')));
      exchange_->fail(Error(Code::io, "its gradient has not left the device: " + line, "parameter " + parameters_[i].name));
    }
  };
  for (at::Tensor* part : parts) {
    const auto strides = parts.size() == 1 ? layout_of(parameters_[i].tensor) : part->strides().vec();
    *part = staging_[i]->to_host(*part, strides, part == parts.back() ? Staging::Arrived(all_here) : [](const std::exception_ptr&) {});
  }
}

// Parameters that this pass did not reach are absent, unless something is in their .grad: what no_sync() gathered, or the
// mean of a pass before. Zeros say nothing: zero_grad(set_to_none=False) leaves them.
void DataParallel::account_rest() {
  answer_calls_after(0);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!accounted_[i]) account(i, false);
  }
  ended_ = true;
  if (places_) places_->pass_ends();
  if (weight_ == 0) return;
  const auto now = steady_now();
  const double whole = seconds_between(backward_began_, now);
  {
    const std::lock_guard lock(leaving_);
    pace_.backward_took(whole - (waited() - waited_before_pass_), whole, backward_at_);
  }
  record(EventKind::backward, backward_began_, now, parameters_.size(), weight_);
}

at::Tensor DataParallel::contribution(std::size_t i) const {
  const auto& [name, parameter] = parameters_[i];
  const auto& gradient = parameter.grad();
  if (!gradient.defined()) return {};
  if (gradient.layout() != at::kStrided) {
    if (gradient.is_sparse() && tables_.is_sparse(i)) return gradient.detach();
    throw Error(Code::unsupported, "its gradient is sparse", "parameter " + name, "use sparse=False, or torch.nn.Embedding(sparse=True)");
  }
  return staging_[i] ? gradient.detach() : in_layout_of(parameter, gradient.detach());
}

bool DataParallel::install(std::size_t i) {
  // Inside a backward pass a gradient is what autograd has gathered so far, as everywhere.
  if (finished_ || torch::autograd::get_current_graph_task_id() != -1) return false;
  if (!open_) {
    multiply_held(i);
    return false;
  }
  if (!ended_) account_rest();
  session_.outlives_losses() ? finish() : install_mean(i);
  return !std::exchange(read_early_, true);
}

void DataParallel::install_mean(std::size_t i) {
  if (installed_[i]) return;
  // The mean is what it is, whoever asks for it where.
  const c10::InferenceMode ordinary(false);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  if (divided_.contains(i)) return install_strip(i);
  if (owned_.contains(i)) return install_part(i);
  const double waited_before = exchange_->waited();
  const auto tensor = static_cast<std::uint32_t>(i);
  const auto& parameter = parameters_[i].tensor;
  const bool by_factors = exchange_->by_factors(tensor);
  const auto* gathered = by_factors ? exchange_->factors(tensor) : nullptr;
  const auto* rows = tables_.is_sparse(i) ? exchange_->rows(tensor) : nullptr;
  const auto* reduced = by_factors || tables_.is_sparse(i) ? nullptr : exchange_->result(tensor);
  communication_.exposed += exchange_->waited() - waited_before;
  installed_[i] = true;
  const auto placed = [&](const at::Tensor& on_host) {
    return staging_[i] ? staging_[i]->to_device(on_host) : parameter.is_cpu() ? on_host : on_host.to(parameter.device());
  };
  at::Tensor mean;  // stays undefined where nobody had one: then .grad stays as it is
  if (gathered) mean = multiply(*gathered, exchange_->plan().tensors[i].layer(), placed);
  if (rows) mean = sparse_mean(*rows, parameter, placed);
  if (rows && contributions_[i].defined() && !contributions_[i].is_sparse()) mean = mean.to_dense();  // made so by another use
  if (reduced && looks_at_means()) mean_wire_share_[i] = packed_share({static_cast<const std::byte*>(reduced), parameter.nbytes()});
  if (reduced) {
    const auto options = parameter.options().device(at::kCPU).requires_grad(false);
    mean = placed(at::from_blob(const_cast<void*>(reduced), parameter.sizes(), layout_of(parameter), [memory = exchange_->memory(tensor)](void*) {}, options));
  }
  if (!mean.defined()) return;
  if (session_.outlives_losses()) replaced_.emplace(i, parameter.grad());
  parameter.mutable_grad() = mean;
}

// Who is late is waited for here first.
std::vector<double> DataParallel::weights() {
  const double before = exchange_->waited();
  std::vector<double> all = exchange_->weights();
  waited_for_weights_ += exchange_->waited() - before;
  return all;
}

void DataParallel::record(EventKind kind, Instant begin, Instant end, std::size_t i, double value) const {
  if (!Events::local().enabled()) return;
  Events::local().record({kind, begin, end, static_cast<std::int64_t>(exchange_->iteration()), -1, value,
                          i < event_names_.size() ? event_names_[i] : 0});
}

void DataParallel::note(const std::string& line) const {
  const auto now = steady_now();
  Events::local().record({EventKind::note, now, now, static_cast<std::int64_t>(exchange_->iteration()), -1, 0, Events::local().intern(line)});
}

}  // namespace shoal::nn
