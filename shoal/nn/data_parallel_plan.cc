// DataParallel's plan: from which figures it is chosen, how it follows the links, and what of it goes on in a run that continues another.
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "shoal/nn/data_parallel.h"
#include "shoal/nn/first_plan.h"

namespace shoal::nn {
namespace {

// Among what members ask of all: the plan is to be fitted to the links anew. Signals have the low bits.
constexpr std::uint64_t kFit = std::uint64_t{1} << 63;

}  // namespace

std::uint64_t DataParallel::own_asks() const { return asks_ | (wants_fit_ ? kFit : 0); }

void DataParallel::hear_asks() {
  const auto asks = exchange_.asked();
  asked_ |= asks & ~kFit;
  fit_asked_ = (asks & kFit) != 0;
  if (digest_is_due()) compare_replicas();
}

void DataParallel::continue_from(std::uint64_t iterations, std::optional<exchange::ExchangePlan> plan) {
  if (options_.plan) plan = options_.plan;
  iterations_before_ = iterations;
  if (iterations < measured_iterations_) {
    measured_iterations_ -= iterations;
  } else if (plan) {
    exchange::check_fits(*plan, describe(parameters_, tables_), session_.size());
    exchange_.replan(*std::move(plan));
    plan_is_final_ = true;
  }
}

std::map<std::string, at::Tensor> DataParallel::kept() {
  std::map<std::string, at::Tensor> all;
  for (const auto& [tensor, kept] : exchange_.kept()) {
    all.emplace(parameters_[tensor].name + ": " + kept.name,
                at::from_blob(kept.data, {static_cast<std::int64_t>(kept.count)}, kept.type == DType::i64 ? at::kLong : at::kFloat));
  }
  return all;
}

void DataParallel::put_back(const std::map<std::string, at::Tensor>& kept) {
  for (auto& [name, mine] : this->kept()) {
    const auto found = kept.find(name);
    if (found != kept.end() && found->second.sizes() == mine.sizes()) mine.copy_(found->second);
  }
}

// Which tensors are weights of fully connected layers, with the rows that this member had. Returns how fast it multiplies the largest's rows
// of all members, 0 if there is none: measured on all at once, since those that share cores see what is left of them.
double DataParallel::describe_layers(std::vector<exchange::TensorSpec>& specs) const {
  std::optional<std::size_t> largest;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto& parameter = parameters_[i].tensor;
    if (pairs_.rows(i) == 0 || specs[i].type != DType::f32 || parameter.dim() != 2 || !parameter.is_contiguous()) continue;
    specs[i].rows = pairs_.rows(i);
    specs[i].filled = pairs_.filled(i);
    specs[i].outputs = static_cast<std::uint64_t>(parameter.size(0));
    if (!largest || specs[i].count * specs[i].rows > specs[*largest].count * specs[*largest].rows) largest = i;
  }
  return largest ? multiply_rate(specs[*largest].layer(), specs[*largest].rows * session_.size(), parameters_[*largest].tensor.device()) : 0;
}

// Everybody waits for the slowest, whose figures decide.
void DataParallel::choose_plan() {
  plan_is_final_ = true;
  if (options_.plan) return exchange_.replan(*options_.plan);
  session_.link_model();
  auto specs = exchange_.plan().tensors;
  const double rate = describe_layers(specs);
  tables_.describe(specs);
  const auto told = session_.gather_text(std::to_string(pace_.forward() + pace_.backward()), "pace");
  std::vector<double> pace;
  for (const auto& theirs : told) pace.push_back(std::strtod(theirs.c_str(), nullptr));
  const auto slowest = static_cast<net::Rank>(std::max_element(pace.begin(), pace.end()) - pace.begin());
  std::string text;
  if (session_.rank() == slowest) {
    // A device is behind its caller: what it has computed last says when backward was over.
    const double latest = std::max(pace_.latest_backward(), *std::max_element(backward_at_.begin(), backward_at_.end()));
    const double backward = pace_.backward() * latest / pace_.latest_backward();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      specs[i].first_use = first_use_[i].first;
      specs[i].forward_at = first_use_[i].second * pace_.forward();
      specs[i].backward_at = backward_at_[i] >= 0 ? backward_at_[i] * backward / latest : backward;
    }
    text = to_json(exchange::make_plan(std::move(specs), session_.size(), session_.link_model(),
                                       {pace_.forward(), backward, rate, pace_.between()}, options_.choice));
  }
  text = session_.broadcast_text(text, slowest, "agreement on the plan");
  exchange_.replan(exchange::plan_from_json(text, "the plan of rank " + std::to_string(slowest)));
}

void DataParallel::follow_links() {
  const double waited = communication_.exposed - std::exchange(exposed_before_, communication_.exposed);
  if (!options_.plan && session_.rank() == 0) {
    if (!drift_) drift_.emplace(exchange_.plan().predicted_seconds());
    if (drift_->after(waited)) wants_fit_ = true;
  }
  if (!std::exchange(fit_asked_, false)) return;
  const Instant began = steady_now();
  exchange_.replan(exchange::fitted_to(exchange_.plan(), session_.measure_links_again()));
  wants_fit_ = false;
  ++fits_;
  if (drift_) drift_->fitted();
  record(EventKind::planning, began, steady_now(), parameters_.size(), 0);
}

}  // namespace shoal::nn
