#include "shoal/nn/local_rounds.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

#include "shoal/core/event.h"
#include "shoal/exchange/planner.h"
#include "shoal/nn/first_plan.h"
#include "shoal/nn/kept.h"

namespace shoal::nn {
namespace {

// Among what members say to all: I have taken a step, and shall take more. Signals have the low bits.
constexpr std::uint64_t kGoesOn = std::uint64_t{1} << 62;

const char* const kVelocity = "velocity: ";
const char* const kMean = "mean: ";
const char* const kNoted = "noted: ";
const char* const kSamples = "samples";

bool has_fractions(const at::Tensor& tensor) { return tensor.is_floating_point() || tensor.is_complex(); }

std::vector<at::Tensor> without_fractions(const std::vector<NamedTensor>& buffers) {
  std::vector<at::Tensor> whole;
  for (const auto& [name, tensor] : buffers) {
    if (!has_fractions(tensor)) whole.push_back(tensor);
  }
  return whole;
}

std::vector<NamedTensor> averaged(std::vector<NamedTensor> parameters, const std::vector<NamedTensor>& buffers) {
  for (const auto& buffer : buffers) {
    if (has_fractions(buffer.tensor) && buffer.tensor.numel() > 0) parameters.push_back(buffer);
  }
  return parameters;
}

exchange::ExchangePlan plan_before_measuring(const std::vector<NamedTensor>& tensors, const LocalRounds::Options& options,
                                             std::uint32_t members) {
  return first_plan(describe(tensors, Tables(tensors, {})), options.choice, options.plan, members);
}

at::Tensor found_in(const std::map<std::string, at::Tensor>& all, const std::string& name, const at::Tensor& like) {
  const auto found = all.find(name);
  if (found == all.end()) return {};
  if (found->second.sizes() != like.sizes())
    throw Error(Code::mismatch, "it has another shape there", "the checkpoint's " + name);
  auto copy = at::empty_strided(like.sizes(), layout_of(like), like.options().requires_grad(false));
  return copy.copy_(found->second);
}

}  // namespace

LocalRounds::LocalRounds(Session& session, const std::vector<NamedTensor>& parameters, const std::vector<NamedTensor>& buffers,
                         Options options)
    : session_(session),
      followed_(session, without_fractions(buffers)),
      options_(std::move(options)),
      exchange_(session.runner(), session.new_channel(),
                plan_before_measuring(averaged(parameters, buffers), options_, session.size()), session.patience()) {
  rounds_ = exchange::parse_choice(exchange_.plan().choice, "plan").rounds.value();
  rounds_.fragments = exchange_.plan().turns();
  samples_then_.resize(rounds_.fragments);
  for (const auto& [name, tensor] : averaged(parameters, buffers)) {
    Averaged t;
    t.name = name;
    t.value = tensor;
    t.is_parameter = tensors_.size() < parameters.size();
    t.old = tensor.detach().clone();
    tensors_.push_back(std::move(t));
  }
}

void LocalRounds::set_samples(double samples) {
  if (!(samples >= 0)) throw Error(Code::invalid_argument, "the number of samples is negative", "model.samples()");
  declared_ = samples;
}

std::uint64_t LocalRounds::asked() { return std::exchange(asked_, 0); }

bool LocalRounds::step_taken() {
  samples_ += declared_ ? *declared_ : counted_.value_or(1);
  declared_.reset();
  counted_.reset();
  if (!rounds_.is_due(++steps_)) return false;
  land();
  start(true);
  if (rounds_.fragments == 1) land();
  return true;
}

bool LocalRounds::idle_round() {
  land();
  start(false);
  land();
  if (without_steps_ < rounds_.fragments) return true;
  without_steps_ = 0;
  steps_ = 0;  // all begin their rounds together again
  return false;
}

// --- one fragment

std::vector<std::uint32_t> LocalRounds::tensors_in(std::uint32_t turn) const {
  std::vector<std::uint32_t> tensors;
  for (const auto& unit : plan().units) {
    if (unit.turn == turn) tensors.insert(tensors.end(), unit.tensors.begin(), unit.tensors.end());
  }
  return tensors;
}

void LocalRounds::start(bool goes_on) {
  const at::NoGradGuard no_grad;
  turn_ = static_cast<std::uint32_t>(synchronised_++ % rounds_.fragments);
  weight_ = samples_ - std::exchange(samples_then_[turn_], samples_);
  const auto not_heard_yet = asks_ & ~asked_;
  exchange_.begin(weight_, {.asks = not_heard_yet | (goes_on ? kGoesOn : 0)}, turn_);
  under_way_ = true;
  started_at_ = steady_now();
  for (const auto i : tensors_in(turn_)) {
    auto& t = tensors_[i];
    if (goes_on && rounds_.fragments > 1) t.noted = t.value.clone();
    if (weight_ == 0) {
      exchange_.absent(i);
      continue;
    }
    t.difference = in_layout_of(t.value, t.old.sub(t.value));
    exchange_.produced(i, t.difference.const_data_ptr());
  }
}

at::Tensor LocalRounds::mean_of(std::uint32_t tensor) {
  const void* const reduced = exchange_.result(tensor);
  if (!reduced) return {};
  const auto& value = tensors_[tensor].value;
  const auto on_host = at::from_blob(
      const_cast<void*>(reduced), value.sizes(), layout_of(value), [memory = exchange_.memory(tensor)](void*) {},
      value.options().device(at::kCPU).requires_grad(false));
  return on_host.to(value.device());
}

void LocalRounds::hold() {
  if (!under_way_) return;
  const auto asked = steady_now();
  const auto weights = exchange_.weights();
  for (const auto i : tensors_in(turn_)) tensors_[i].mean = mean_of(i);
  const auto said = exchange_.asked();
  exchange_.commit();
  under_way_ = false;
  held_ = true;
  communication_.exposed += seconds_between(asked, steady_now());
  communication_.whole += seconds_between(started_at_, exchange_.last_arrival());

  asked_ |= said & ~kGoesOn;
  without_steps_ = (said & kGoesOn) ? 0 : without_steps_ + 1;
  const auto has_data = [](double w) { return w > 0; };
  const auto first = std::find_if(weights.begin(), weights.end(), has_data);
  if (first == weights.end()) return;
  first_active_ = static_cast<net::Rank>(first - weights.begin());
  idled_ = idled_ || weight_ == 0;
  somebody_idled_ = somebody_idled_ || !std::all_of(weights.begin(), weights.end(), has_data);
  // Who goes on may be far ahead when its fragment lands, and must not wait there for the others.
  if (rounds_.fragments == 1 || !(said & kGoesOn)) {
    followed_.start(weights);
    followed_.finish();
  }
}

void LocalRounds::land() {
  hold();
  if (!held_) return;
  const at::NoGradGuard no_grad;
  for (const auto i : tensors_in(turn_)) take_over(tensors_[i]);
  held_ = false;
  if (!plan_is_final_) choose_plan();
}

void LocalRounds::take_over(Averaged& t) {
  if (t.mean.defined()) {
    const bool outer = t.is_parameter;
    if (outer && rounds_.momentum > 0) {
      if (t.velocity.defined()) {
        t.velocity.mul_(rounds_.momentum).add_(t.mean);
      } else {
        t.velocity = t.mean.clone();
      }
      t.mean = t.mean.add(t.velocity, rounds_.momentum);
    }
    t.old.add_(t.mean, outer ? -rounds_.rate : -1.0);
  }
  if (t.noted.defined()) {
    t.value.sub_(t.noted).add_(t.old);
  } else {
    t.value.copy_(t.old);
  }
  t.difference = t.noted = t.mean = at::Tensor();
}

void LocalRounds::choose_plan() {
  plan_is_final_ = true;
  if (options_.plan) return exchange_.replan(*options_.plan);
  const Instant began = steady_now();
  session_.link_model();
  exchange_.replan(agreed_plan(session_, [this] {
    return exchange::make_plan(plan().tensors, session_.size(), session_.link_model(), {}, options_.choice);
  }));
  Events::local().record({EventKind::planning, began, steady_now(), static_cast<std::int64_t>(steps_), -1, 1, 0});
}

// --- around it

void LocalRounds::begin_anew() {
  hold();
  held_ = false;
  const at::NoGradGuard no_grad;
  for (auto& t : tensors_) {
    t.old.copy_(t.value);
    t.velocity = t.difference = t.noted = t.mean = at::Tensor();
  }
  std::fill(samples_then_.begin(), samples_then_.end(), samples_);
}

std::optional<net::Rank> LocalRounds::take_over_from() {
  idled_ = false;
  return std::exchange(somebody_idled_, false) ? std::optional(first_active_) : std::nullopt;
}

std::vector<std::pair<at::Tensor, at::Tensor>> LocalRounds::old_values() const {
  std::vector<std::pair<at::Tensor, at::Tensor>> all;
  for (const auto& t : tensors_) all.emplace_back(t.value, t.old);
  return all;
}

LocalRounds::Progress LocalRounds::progress() {
  hold();
  Progress p{synchronised_, steps_, {}, {}};
  for (const auto& t : tensors_) {
    if (t.velocity.defined()) p.shared.emplace(kVelocity + t.name, t.velocity);
    if (t.mean.defined()) p.shared.emplace(kMean + t.name, t.mean);
    if (t.noted.defined()) p.own.emplace(kNoted + t.name, t.noted);
  }
  std::vector<double> since;
  for (const double then : samples_then_) since.push_back(samples_ - then);
  p.own.emplace(kSamples, at::tensor(since, at::kDouble));
  p.own.merge(kept_of(exchange_));
  return p;
}

void LocalRounds::continue_from(const Progress& progress, std::optional<exchange::ExchangePlan> plan) {
  if (options_.plan) plan = options_.plan;
  if (plan) {
    exchange::check_fits(*plan, exchange_.plan().tensors, session_.size());
    exchange_.replan(*std::move(plan));
    plan_is_final_ = true;
  }
  exchange_.continues(progress.synchronised);
  synchronised_ = progress.synchronised;
  steps_ = progress.steps;
  held_ = false;
  const at::NoGradGuard no_grad;
  for (auto& t : tensors_) {
    t.velocity = found_in(progress.shared, kVelocity + t.name, t.value);
    t.mean = found_in(progress.shared, kMean + t.name, t.value);
    t.noted = found_in(progress.own, kNoted + t.name, t.value);
    held_ = held_ || t.mean.defined();
  }
  if (held_) turn_ = static_cast<std::uint32_t>((synchronised_ - 1) % rounds_.fragments);
  if (const auto since = progress.own.find(kSamples);
      since != progress.own.end() && since->second.numel() == rounds_.fragments) {
    const auto values = since->second.to(at::kDouble).contiguous();
    for (std::size_t turn = 0; turn < samples_then_.size(); ++turn)
      samples_then_[turn] = samples_ - values.const_data_ptr<double>()[turn];
  }
  put_back_kept(exchange_, progress.own);
}

}  // namespace shoal::nn
