// DataParallel's step: whole, or parameter by parameter, and the end of an iteration.
#include <algorithm>
#include <utility>

#include "shoal/nn/data_parallel.h"

namespace shoal::nn {

void DataParallel::finish_buffers() {
  const Instant began = steady_now();
  buffers_.finish();
  waited_besides_ += seconds_between(began, steady_now());
}

void DataParallel::finish() {
  if (!open_) return multiply_all_held();
  if (finished_) return;
  if (!ended_) account_rest();
  session_.together("step " + std::to_string(exchange_->iteration()), [this] {
    begin_again_after_loss();
    if (!stepping_) {
      buffers_.start(weights());
      require_equal_steps();
    }
    for (const auto i : in_order_of_arrival()) settle(i);  // each is multiplied or placed while others are on the wire
    finish_buffers();
    if (session_.outlives_losses()) exchange_->settle();
  }, Session::With::all);
  finished_ = true;
  communication_.whole += seconds_between(first_gradient_at_, exchange_->last_arrival());
  if (!stepping_) update_begins();
}

void DataParallel::settle(std::size_t i) {
  const Instant began = steady_now();
  const double waited_before = waited();
  install_mean(i);
  pace_.placing_took(seconds_between(began, steady_now()) - (waited() - waited_before));
}

void DataParallel::step_begins() {
  if (!open_ || stepping_) return;
  if (!ended_) account_rest();
  buffers_.start(weights());
  finish_buffers();
  require_equal_steps();
  hear_asks();
  stepping_ = true;
}

std::vector<std::uint32_t> DataParallel::in_order_of_arrival() const {
  const auto& plan = exchange_->plan();
  auto units = plan.units;
  std::stable_sort(units.begin(), units.end(), [](const auto& a, const auto& b) { return a.priority < b.priority; });
  std::vector<std::uint32_t> order;
  for (const auto& unit : units) order.insert(order.end(), unit.tensors.begin(), unit.tensors.end());
  return order;
}

std::vector<std::uint32_t> DataParallel::aliased() const {
  std::vector<std::uint32_t> shared;
  for (std::uint32_t i = 0; i < parameters_.size(); ++i) {
    const auto& tensor = parameters_[i].tensor;
    if (tensor.has_storage() && tensor.unsafeGetTensorImpl()->unsafe_storage().use_count() > 1) shared.push_back(i);
  }
  return shared;
}

std::vector<std::uint32_t> DataParallel::arrived() const {
  std::vector<std::uint32_t> here;
  for (std::uint32_t i = 0; i < parameters_.size(); ++i) {
    if (installed_[i] || exchange_->arrived(i)) here.push_back(i);
  }
  return here;
}

void DataParallel::update_ends() {
  const Instant now = steady_now();
  record(EventKind::optimizer, update_began_, now, parameters_.size(), 0);
  if (stepping_) pace_.placing_took(seconds_between(update_began_, now));  // of those whose means are here; others' are on their way
}

void DataParallel::commit() {
  if (!open_) return;
  finish();
  if (!stepping_) update_ends();
  behind_ = Behind::step;
  close_iteration();
}

void DataParallel::complete() {
  if (stepping_) return options_.step_the_rest();
  finish();
  behind_ = Behind::pass;
  close_iteration();
}

// What all members do together (a fit, a mend) they do at the end of a whole step, a moment that comes in the same order on each of them whatever
// else they train: the next one after the iteration in which they heard of it.
void DataParallel::close_iteration() {
  const bool together = !stepping_ && needs_whole_step();
  if (!stepping_) hear_asks();
  exchange_->commit();
  open_ = ended_ = finished_ = stepping_ = read_early_ = false;
  pass_ = -1;
  first_gradient_at_ = {};
  declared_samples_.reset();
  std::fill(accounted_.begin(), accounted_.end(), false);
  std::fill(installed_.begin(), installed_.end(), false);
  std::fill(contributions_.begin(), contributions_.end(), at::Tensor());
  replaced_.clear();
  pairs_.clear();
  tables_.clear();
  for (auto& [i, divided] : divided_) divided.gradient.reset();
  if (together && replicas_differ_) mend_replicas();
  settle_plan();
  say_placement();
  if (plan_is_final_) return follow_links(together);
  if (exchange_->iteration() < measured_iterations_) return;
  const Instant began = steady_now();
  choose_plan();
  record(EventKind::planning, began, steady_now(), parameters_.size(), options_.plan ? 0 : 1);
}

std::uint64_t DataParallel::asked() { return std::exchange(asked_, 0); }

}  // namespace shoal::nn
