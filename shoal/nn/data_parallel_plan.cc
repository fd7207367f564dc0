// DataParallel's plan: from which figures it is chosen, how it follows the links, and what of it goes on in a run that continues another.
#include <algorithm>
#include <string>
#include <utility>

#include "shoal/nn/data_parallel.h"
#include "shoal/nn/first_plan.h"
#include "shoal/nn/paces.h"

namespace shoal::nn {
namespace {

// Among what members ask of all: the plan is to be fitted to the links, measured anew. Signals have the low bits.
constexpr std::uint64_t kFit = std::uint64_t{1} << 63;
// The same to the links as they were seen meanwhile, if that says enough.
constexpr std::uint64_t kFollow = std::uint64_t{1} << 61;
// Workers train no more: those who only serve may go.
constexpr std::uint64_t kOver = std::uint64_t{1} << 62;
// Not asked but told with it: what the iteration comes behind. Who has no data tells neither.
constexpr std::uint64_t kBehindStep = std::uint64_t{1} << 60, kBehindPass = std::uint64_t{1} << 59;
// Likewise: training waited so long for the first iteration's means that of those that are measured before the plan is chosen the next one is the last. The first
// one's passes are too cold to choose by, and what a script does between two steps (divided.py) it shows between these. Who waits for a device does not say why.
constexpr std::uint64_t kWaitedLong = std::uint64_t{1} << 58;
constexpr double kLong = 10;  // seconds

// So many iterations by the plan say what one usually takes, without the first, which places and allocates. In the tens of milliseconds that these are of a
// small model caches and the allocator are still cold: once more, then, when they are warm.
constexpr std::uint64_t kUntilSettled = 10, kUntilSettledAgain = 60;

}  // namespace

exchange::Told DataParallel::told() const {
  const std::uint64_t asks = asks_ | (wants_fit_ ? kFit : 0) | (has_drifted_ ? kFollow : 0) | (dismisses_ ? kOver : 0) |
                             (behind_ == Behind::step ? kBehindStep : behind_ == Behind::pass ? kBehindPass : 0) |
                             (exchange_->iteration() == 1 && stagings_.empty() && exchange_->waited_for_means() > kLong ? kWaitedLong : 0);
  exchange::Told told{.asks = asks, .digest = digest_is_due() ? digest() : 0};
  if (weight_ > 0) told.took = pace_.latest();  // who has no data takes no time
  told.took.processor *= members_a_core_;
  return told;
}

// Where one member leaves out a step(), its second backward() meets the others' next one, and each would go its own way from there on.
void DataParallel::require_equal_steps() const {
  const auto told = exchange_->asked();
  if (!(told & kBehindStep) || !(told & kBehindPass)) return;
  const bool stepped = behind_ == Behind::step;
  throw Error(Code::mismatch,
              std::string("this member has ") + (stepped ? "" : "not ") + "stepped since its last backward(), " + (stepped ? "another has not" : "others have"),
              "rank " + std::to_string(session_.rank()) + ", step " + std::to_string(exchange_->iteration()),
              "call step() behind the same backward() passes on every member");
}

void DataParallel::hear_asks() {
  const auto asks = exchange_->asked();
  asked_ |= asks & ~(kFit | kFollow | kOver | kBehindStep | kBehindPass | kWaitedLong);
  over_ = (asks & kOver) != 0;
  fit_asked_ = fit_asked_ || (asks & (kFit | kFollow)) != 0;
  measure_asked_ = measure_asked_ || (asks & kFit) != 0;
  if ((asks & kWaitedLong) && !options_.plan) measured_iterations_ = std::min(measured_iterations_, std::uint64_t{2});
  pace_.slowest_took(exchange_->slowest());
  if (digest_is_due()) compare_replicas();
}

// The plan is of the parameters as they were.
void DataParallel::require_unchanged(std::size_t i) const {
  const auto& [name, parameter] = parameters_[i];
  const auto& planned = exchange_->plan().tensors[i];
  const auto count = static_cast<std::uint64_t>(parameter.numel()) * (parameter.is_complex() ? 2 : 1);
  if (element_type(parameter, name) == planned.type && count == planned.count) return;
  throw Error(Code::invalid_argument,
              "it has " + std::to_string(count) + " elements of " + shoal::name(element_type(parameter, name)) + ", and had " +
                  std::to_string(planned.count) + " of " + shoal::name(planned.type) + " when the model was wrapped",
              "parameter " + name, "change the model before data_parallel()");
}

void DataParallel::continue_from(std::uint64_t iterations, std::optional<exchange::ExchangePlan> plan) {
  if (options_.plan) plan = options_.plan;
  exchange_->continues(iterations);
  const auto choice = exchange::to_text(options_.choice);
  if (plan && !options_.plan && plan->choice != choice) {
    note("the checkpoint was made by another plan, " + plan->choice + ": this run chooses anew, by " + choice);
    plan.reset();
  }
  if (iterations < measured_iterations_ && (!plan || options_.plan)) {
    measured_iterations_ -= iterations;
  } else if (plan) {
    exchange::check_fits(*plan, describe(parameters_, tables_), session_.size(), session_.servers());
    if (options_.plan) require_divisible(*plan);
    if (!divides_only_divisible(*plan)) plan = exchange::without_strips(*std::move(plan));
    take_for_good(*std::move(plan));
  }
}

// What depends on the plan alone follows it: who computes which strips, and where means and gradients lie.
void DataParallel::take_for_good(exchange::ExchangePlan plan) {
  links_now_.reset();
  take_plan(std::move(plan));
  plan_is_final_ = true;  // only now: a plan that is taken for a new group of members is placed with it
  follow_division();
  follow_placement();
  settle_from_here();
}

// Which tensors are weights of fully connected layers, with the rows that this member had. Returns how fast it multiplies rows of the largest, if
// there is one: measured on all at once, since those that share cores see what is left of them.
MultiplyRates DataParallel::describe_layers(std::vector<exchange::TensorSpec>& specs) const {
  std::optional<std::size_t> largest;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto& parameter = parameters_[i].tensor;
    if (pairs_.rows(i) == 0 || specs[i].type != DType::f32 || parameter.dim() != 2 || !parameter.is_contiguous()) continue;
    specs[i].rows = pairs_.rows(i);
    specs[i].filled = pairs_.filled(i);
    specs[i].bf16_rows = pairs_.bf16_rows(i);
    specs[i].takes_data = pairs_.takes_data(i);
    specs[i].outputs = static_cast<std::uint64_t>(parameter.size(0));
    if (!largest || specs[i].count * specs[i].rows > specs[*largest].count * specs[*largest].rows) largest = i;
  }
  if (!largest) return {};
  const auto& spec = specs[*largest];
  return multiply_rates(spec.layer(), spec.rows, spec.rows * (session_.living() - session_.servers()), parameters_[*largest].tensor.device());
}

Paces DataParallel::paces_of_all(const MultiplyRates& rates) {
  const auto own = MemberPace::here(pace_.usual(), rates.others > 0 ? 1 / rates.others : 0, rates.own > 0 ? 1 / rates.own : 0, session_.links_pack());
  const auto lines = session_.gather_text(own.line(), "pace");
  Paces paces;
  for (std::size_t member = 0; member < lines.size() - session_.servers(); ++member) paces.hears(lines[member]);
  members_a_core_ = paces.members_a_core(own.machine);
  return paces;
}

void DataParallel::choose_plan() {
  if (options_.plan) {
    require_divisible(*options_.plan);
    return take_for_good(*options_.plan);
  }
  if (behind_ == Behind::step) pace_.step_ends(steady_now(), waited(), cpu_seconds());
  session_.link_model();
  auto specs = exchange_->plan().tensors;
  const auto paces = paces_of_all(describe_layers(specs));
  agree_on_division(specs);
  tables_.describe(specs);
  // A device is behind its caller: what it has computed last says when backward was over.
  const double own = std::max(pace_.latest_backward(), 1e-9), latest = std::max(own, *std::max_element(backward_at_.begin(), backward_at_.end()));
  auto pace = paces.compute();
  pace.backward_seconds *= latest / own;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    specs[i].first_use = first_use_[i].first;
    specs[i].forward_at = first_use_[i].second * pace.forward_seconds;
    specs[i].backward_at = pace.backward_seconds * (backward_at_[i] >= 0 ? backward_at_[i] / latest : 1);
    if (paces.links_pack()) specs[i].wire_share = mean_wire_share_[i];
  }
  take_for_good(agreed_plan(session_, [&] {
    auto plan = exchange::make_plan(specs, session_.living(), session_.link_model(), pace, options_.choice, session_.servers());
    if (exchange_->before() == 0) plan.measured_iterations = measured_iterations_;
    return plan;
  }));
}

// Iterations are counted, and what they take is measured, from the plan or the group of members on that they go by now.
void DataParallel::settle_from_here() {
  const bool settles = plan_is_final_ && !options_.plan && stagings_.empty();  // a device is behind its caller
  settled_from_ = exchange_->iteration();
  settles_at_ = settles ? settled_from_ + kUntilSettled : 0;
  if (settles) pace_ = {};
  for (std::size_t i = 0; i < parameters_.size(); ++i) mean_wire_share_[i] = exchange_->plan().tensors[i].wire_share;
  waited_before_pass_ = waited();
}

// In iterations behind which a plan is chosen or settled. As layers learn their means get more zeros, or fewer.
bool DataParallel::looks_at_means() const { return !plan_is_final_ || exchange_->iteration() + 1 == settles_at_; }

void DataParallel::settle_plan() {
  if (settles_at_ == 0 || exchange_->iteration() != settles_at_) return;
  settles_at_ = settles_at_ < settled_from_ + kUntilSettledAgain ? settled_from_ + kUntilSettledAgain : 0;
  ++plans_;
  auto plan = exchange_->plan();
  const auto chosen_by = plan.link;
  if (links_now_) plan.link = *links_now_;
  plan.link.network = chosen_by.network;  // programs made for it, and for as many members
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    auto& share = plan.tensors[i].wire_share;
    if (share < 1) share = mean_wire_share_[i];  // the same on all members, as the mean is
  }
  plan = exchange::settled(std::move(plan), pace_.usual_of_slowest(), pace_.usual_of_gradients());
  plan.link = chosen_by;
  exchange_->predict(std::move(plan));
  if (drift_) drift_->expects(exchange_->plan().predicted_seconds());
}

void DataParallel::follow_links(bool together) {
  session_.look_at_links(static_cast<std::int64_t>(exchange_->iteration()));
  const double waited = communication_.exposed - std::exchange(exposed_before_, communication_.exposed) + std::exchange(waited_for_weights_, 0);
  if (!options_.plan && session_.place() == 0) {
    if (!drift_) drift_.emplace(exchange_->plan().predicted_seconds());
    if (drift_->after(waited)) has_drifted_ = true;
  }
  if (!together || !std::exchange(fit_asked_, false)) return;
  const Instant began = steady_now();
  const bool measures = std::exchange(measure_asked_, false);
  links_now_ = measures ? session_.measure_links_again() : session_.follow_links();
  take_plan(exchange::fitted_to(exchange_->plan(), *links_now_));
  wants_fit_ = wants_fit_ && !measures;  // who asked for links that are measured, and was not heard yet, asks again
  has_drifted_ = false;
  ++fits_;
  if (drift_) drift_->fitted();
  record(EventKind::planning, began, steady_now(), parameters_.size(), 0);
}

}  // namespace shoal::nn
