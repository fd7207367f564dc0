// DataParallel's layers that the plan divides: what of their forward and backward passes is done with the group, and how a strip's gradient leaves.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <utility>

#include "shoal/exchange/way.h"
#include "shoal/nn/data_parallel.h"

namespace shoal::nn {
namespace {

at::Tensor strip_of(const at::Tensor& whole, const exchange::Strips& strips, net::Rank rank) {
  const auto place = strips.place(rank);
  return whole.narrow(0, static_cast<std::int64_t>(strips.first(place)), static_cast<std::int64_t>(strips.rows(place)));
}

// What the plan divides: a layer in so many groups, or a parameter in parts, of which each member has one.
struct Division {
  std::uint32_t i = 0;
  std::uint32_t groups = 0;  // 0: in parts
};

std::vector<Division> divided_in(const exchange::ExchangePlan& plan) {
  std::vector<Division> all;
  for (const auto& unit : plan.units) {
    const auto way = exchange::way_named(unit.way);
    if (way->divides()) all.push_back({unit.tensors.front(), way->groups()});
  }
  return all;
}

}  // namespace

void DataParallel::set_divisible(const std::vector<std::size_t>& parameters) {
  std::fill(divisible_.begin(), divisible_.end(), false);
  for (const auto i : parameters) divisible_.at(i) = staging_.at(i) == nullptr;
}

std::vector<std::size_t> DataParallel::divided() const {
  std::vector<std::size_t> all;
  for (const auto& [i, divided] : divided_) all.push_back(i);
  for (const auto& [i, owned] : owned_) all.push_back(i);
  std::sort(all.begin(), all.end());
  return all;
}

at::Tensor DataParallel::own_mean(std::size_t parameter) const {
  return owned_.contains(parameter) ? owned_.at(parameter).mean : divided_.at(parameter).mean;
}

bool DataParallel::divides_only_divisible(const exchange::ExchangePlan& plan) const {
  const auto all = divided_in(plan);
  return std::all_of(all.begin(), all.end(), [this](const Division& of) { return of.groups > 0 ? divisible_[of.i] : by_element_[of.i]; });
}

// By all members. Memory of a layer's weight that is held elsewhere would show strips of different steps; parts of such a parameter are awaited in step().
void DataParallel::agree_on_division(std::vector<exchange::TensorSpec>& specs) const {
  const auto count = parameters_.size();
  std::string own(2 * count, 'n');  // layers, then parameters in parts
  for (std::size_t i = 0; i < count && !session_.outlives_losses(); ++i) {
    if (divisible_[i] && pairs_.rows(i) > 0) own[i] = 'y';
    if (by_element_[i]) own[count + i] = 'y';
  }
  for (const auto i : aliased()) own[i] = 'n';
  for (auto& spec : specs) spec.divisible = spec.by_element = true;
  for (const auto& theirs : session_.gather_text(own, "parameters that may be divided")) {
    for (std::size_t i = 0; i < count; ++i) {
      specs[i].divisible = specs[i].divisible && theirs.at(i) == 'y';
      specs[i].by_element = specs[i].by_element && theirs.at(count + i) == 'y';
    }
  }
}

void DataParallel::require_divisible(const exchange::ExchangePlan& plan) const {
  for (const auto& [i, groups] : divided_in(plan)) {
    if (groups > 0 ? divisible_[i] : by_element_[i]) continue;
    throw Error(Code::mismatch, "the saved plan divides " + parameters_[i].name + " among members, which this script does not allow", "plan",
                "make a new one with --plan auto; docs/ways.md says which may be divided");
  }
}

// All members have just taken the plan.
void DataParallel::follow_division() {
  divided_.clear();
  owned_.clear();
  for (const auto& [i, groups] : divided_in(exchange_->plan())) {
    if (groups == 0) {
      owned_[i] = {{session_.size(), exchange_->plan().tensors[i].count}, {}, {}, {}};
      continue;
    }
    const exchange::Strips strips{session_.size(), groups, exchange_->plan().tensors[i].outputs};
    auto& group = layer_groups_[groups];
    if (!group) group = std::make_unique<LayerGroup>(session_, strips);
    divided_[i] = {strips, group.get(), {}, {}};
  }
}

void DataParallel::undivide() {
  calls_.clear();
  exchange_->replan(exchange::without_strips(exchange_->plan()));
  ++plans_;
  drift_.reset();
  follow_division();
  settle_from_here();
}

std::optional<RowCounts> DataParallel::count_rows(std::size_t i, std::int64_t rows) {
  const Instant began = steady_now();
  auto counts = divided_.at(i).group->count(rows, static_cast<std::int64_t>(i), parameters_[i].name);
  waited_for_group(i, began);
  return counts;
}

at::Tensor DataParallel::forward_in_strips(Call& call, const at::Tensor& x) {
  const auto& [strips, group, gradient, mean] = divided_.at(call.i);
  const auto& name = parameters_[call.i].name;
  const Instant began = steady_now();
  call.number = ++last_call_;
  call.x = group->gather(x, call.rows, name);
  waited_for_group(call.i, began);
  call.strip = strip_of(parameters_[call.i].tensor.detach(), strips, session_.rank());
  const auto y = at::mm(call.x, call.strip.t());
  const Instant computed = steady_now();
  const auto own = group->to_owners(y, call.rows, strips.outputs, name);
  waited_for_group(call.i, computed);
  // One that a backward pass makes again (checkpointing) has its backward pass there, or none.
  if (torch::autograd::get_current_graph_task_id() == -1) calls_.push_back(call);
  return own;
}

at::Tensor DataParallel::backward_in_strips(const Call& call, const at::Tensor& g, bool weight) {
  at::Tensor dx;
  guard([&] {
    const auto& name = parameters_[call.i].name;
    if (weight && !(synchronize_ && hooks_->pass_stores_gradients())) {
      throw Error(Code::unsupported, "its layer was divided among members in the forward pass, so none has its gradient", "parameter " + name,
                  "run forward, too, inside of model.no_sync(), or take a plan that does not divide it: auto," + name + "=ring");
    }
    if (at::GradMode::is_enabled()) {
      throw Error(Code::unsupported, "its layer is divided among members, which has no gradient of a gradient", "parameter " + name,
                  "take a plan that does not divide it: auto," + name + "=ring");
    }
    if (weight) {
      before_accumulation(call.i);
      pass_opens();
      answer_calls_after(call.number);
      if (is_called(call.i) && calls_.back().number == call.number) calls_.pop_back();
    }
    dx = gradients_of(call, g, weight);
  });
  return dx;
}

at::Tensor DataParallel::gradients_of(const Call& call, const at::Tensor& g, bool weight) {
  auto* const group = divided_.at(call.i).group;
  const auto& name = parameters_[call.i].name;
  Instant began = steady_now();
  const auto strip_g = group->to_strips(g, call.rows, name);
  waited_for_group(call.i, began);
  std::unique_ptr<LayerGroup::Sum> sum;
  if (call.input) sum = group->start_reduce(at::mm(strip_g, call.strip), call.rows, name);
  if (weight) add_to_strip(call, strip_g);
  if (!sum) return {};
  began = steady_now();
  const auto dx = sum->wait();
  waited_for_group(call.i, began);
  return dx;
}

// Autograd goes back through calls from the newest on, on all members. So of those that it passed over here, because this member's loss does not
// depend on them, the others have had their gradients in that order, too, and wait for ours: zeros.
void DataParallel::answer_calls_after(std::uint64_t number) {
  while (!calls_.empty() && calls_.back().number > number) {
    const Call call = std::move(calls_.back());
    calls_.pop_back();
    const auto& strips = divided_.at(call.i).strips;
    const auto own_rows = call.rows[strips.place(session_.rank())];
    gradients_of(call, at::zeros({own_rows, static_cast<std::int64_t>(strips.outputs)}, call.x.options()), true);
  }
}

bool DataParallel::is_called(std::size_t i) const {
  return std::any_of(calls_.begin(), calls_.end(), [i](const Call& call) { return call.i == i; });
}

void DataParallel::next_round() {
  for (const auto& [groups, group] : layer_groups_) group->end_round();
  const Instant began = steady_now();
  for (const auto& [groups, group] : layer_groups_) group->next_round();
  waited_besides_ += seconds_between(began, steady_now());
}

// The sum over the group's rows, each with its member's weight: that is known when all members have answered the roll call.
void DataParallel::add_to_strip(const Call& call, const at::Tensor& g) {
  auto& divided = divided_.at(call.i);
  const auto scales = exchange_->prescales();
  const auto members = divided.strips.group_of(session_.rank());
  std::vector<float> of_row;
  for (std::size_t place = 0; place < call.rows.size(); ++place) {
    of_row.insert(of_row.end(), static_cast<std::size_t>(call.rows[place]), static_cast<float>(scales[members[place]]));
  }
  const bool plain = std::all_of(of_row.begin(), of_row.end(), [](float scale) { return scale == 1; });
  const auto product = (plain ? g : at::mul(g, at::tensor(of_row).unsqueeze(1))).t().mm(call.x);
  divided.gradient = divided.gradient.defined() ? divided.gradient.add_(product) : product;
}

void DataParallel::account_strip(std::size_t i) {
  auto rest = weight_ > 0 ? contribution(i) : at::Tensor();
  if (!says_something(rest)) rest.reset();
  const auto tensor = static_cast<std::uint32_t>(i);
  const auto& gradient = divided_.at(i).gradient;
  const std::lock_guard lock(leaving_);
  contributions_[i] = rest;
  if (!gradient.defined() && !rest.defined()) return exchange_->absent(tensor);
  exchange_->produced(tensor, exchange::Strip{bytes_of(gradient), bytes_of(rest)});
}

void DataParallel::install_strip(std::size_t i) {
  const Instant asked = steady_now();
  const auto tensor = static_cast<std::uint32_t>(i);
  auto& divided = divided_.at(i);
  const auto* reduced = exchange_->result(tensor);
  communication_.exposed += Seconds(steady_now() - asked).count();
  installed_[i] = true;
  divided.mean.reset();
  if (!reduced) return;
  auto& parameter = parameters_[i].tensor;
  divided.mean = at::from_blob(const_cast<void*>(reduced), strip_of(parameter.detach(), divided.strips, session_.rank()).sizes(),
                               [memory = exchange_->memory(tensor)](void*) {}, at::kFloat);
  parameter.mutable_grad().reset();
}

void DataParallel::waited_for_group(std::size_t i, Instant since) {
  const Instant now = steady_now();
  const double seconds = Seconds(now - since).count();
  communication_.exposed += seconds;
  waited_besides_ += seconds;
  record(EventKind::exposed, since, now, i, 0);
}

}  // namespace shoal::nn
