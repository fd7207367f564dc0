// DataParallel where the job goes on without members that are lost: what was kept of a step is exchanged again among those that are left.
#include <utility>

#include "shoal/nn/data_parallel.h"
#include "shoal/nn/first_plan.h"

namespace shoal::nn {

// Takes a plan between two iterations, on the members that are left.
void DataParallel::take_plan(exchange::ExchangePlan plan) {
  if (session_.outlives_losses()) {
    auto network = plan.link.network;
    if (network && network->ranks() == session_.size()) network_of_all_ = network;
    const bool fits = (network ? network->ranks() : plan.ranks) == session_.living();
    if (!fits) network = session_.left_of(network_of_all_);  // first: a member may be lost meanwhile
    plan = exchange::for_members(std::move(plan), session_.living(), std::move(network));
  }
  if (exchange_ && generation_ == session_.generation()) {
    exchange_->replan(std::move(plan));
  } else {
    make_exchange(std::move(plan), exchange_ ? exchange_->iteration() : 0, exchange_ ? exchange_->before() : 0);
  }
  ++plans_;
  settle_from_here();
  session_.plan_is_another();
}

void DataParallel::make_exchange(exchange::ExchangePlan plan, std::uint64_t iteration, std::uint64_t before) {
  generation_ = session_.generation();
  members_a_core_ = 0;  // of who was there when the plan was chosen
  links_now_.reset();
  exchange_.reset();  // first: the new one's operations begin where the old one's can no longer
  if (places_) places_->give({});
  buffers_.cancel();
  group_ = session_.lease();
  exchange_ = std::make_unique<exchange::Exchange>(session_.runner(), channel_, std::move(plan), session_.patience(),
                                                   exchange::Exchange::Begin{iteration, generation_, before});
  if (plan_is_final_) follow_placement();
}

DataParallel::Course DataParallel::course() const {
  // A member may have been lost before the first step: the plan is of those that were left then.
  return {exchange_->before(), exchange_->iteration(), measured_iterations_, plan_is_final_, exchange::for_members(exchange_->plan(), session_.size(), network_of_all_)};
}

void DataParallel::take_up(const Course& course) {
  exchange::check_fits(course.plan, describe(parameters_, tables_), session_.size());
  measured_iterations_ = course.measured_iterations;
  plan_is_final_ = course.plan_is_final;
  network_of_all_ = course.plan.link.network;
  auto network = session_.left_of(network_of_all_);
  make_exchange(exchange::for_members(course.plan, session_.living(), std::move(network)), course.iteration, course.iterations_before);
}

// After a loss the exchange takes nothing more, and backward goes on: what it was to be given is kept here.
void DataParallel::hand_over(const std::function<void()>& give) {
  try {
    give();
  } catch (const Error& error) {
    if (!session_.outlives_losses() || error.code() != Code::peer_lost || session_.transport().failure()) throw;
  }
}

void DataParallel::contribute(std::size_t i) {
  const auto tensor = static_cast<std::uint32_t>(i);
  const auto& own = contributions_[i];
  if (!own.defined()) return exchange_->absent(tensor);
  own.is_sparse() ? exchange_->produced(tensor, tables_.rows(i, own)) : exchange_->produced(tensor, own.const_data_ptr());
}

void DataParallel::move_on() {
  if (open_ || !samples_are_spent_ || !session_.may_move() || !session_.move_on()) return;
  take_plan(course().plan);  // as those who came do
  note("from step " + std::to_string(exchange_->iteration()) + " on members are " + std::to_string(session_.living()) +
       ": others have come in place of those that were lost");
}

// First thing in a step's attempt: nothing, unless the members have become fewer since its gradients left.
void DataParallel::begin_again_after_loss() {
  if (generation_ == session_.generation()) return;
  for (auto& [i, gradient] : std::exchange(replaced_, {})) parameters_[i].tensor.mutable_grad() = gradient;
  std::fill(installed_.begin(), installed_.end(), false);
  take_plan(exchange_->plan());
  exchange_->begin(weight_, told());
  for (std::size_t i = 0; i < parameters_.size(); ++i) contribute(i);
  note("step " + std::to_string(exchange_->iteration()) + " is taken by the " +
       std::to_string(session_.living()) + " members that are left, from the gradients they had kept");
}

}  // namespace shoal::nn
