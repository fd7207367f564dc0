#include "shoal/exchange/exchange.h"

#include <algorithm>
#include <utility>

#include "shoal/core/event.h"
#include "shoal/exchange/exchange_impl.h"
#include "shoal/exchange/way.h"
#include "shoal/net/call.h"

namespace shoal::exchange {
namespace {

constexpr int kGenerationShift = 32;  // of operations' numbers on the channel

}  // namespace

void Exchange::Impl::take(ExchangePlan next) {
  for (const auto& passage : passages) wait_for_return(*passage);
  const auto before = std::exchange(plan, std::move(next));
  auto passed = std::exchange(passages, {});
  plan_hash = plan.hash();
  programs.know(plan.link.network);
  operations = 2;
  unit_of.assign(plan.tensors.size(), 0);
  place_of.assign(plan.tensors.size(), 0);
  accounted.assign(plan.tensors.size(), false);
  present.assign(plan.tensors.size(), 0);
  present_anywhere.assign(plan.tensors.size(), 0);
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const auto& unit = plan.units[u];
    auto passage = std::make_unique<Passage>(iteration);
    for (std::size_t place = 0; place < unit.tensors.size(); ++place) {
      unit_of[unit.tensors[place]] = static_cast<std::uint32_t>(u);
      place_of[unit.tensors[place]] = static_cast<std::uint32_t>(place);
    }
    passage->bytes = plan.bytes_of(unit);
    passage->label = plan.name_of(unit);
    passage->event_name = Events::local().intern(passage->label);
    passage->operation = operations;
    passage->flow = flow_for(unit, before, passed);
    operations += passage->flow->operations();
    passages.push_back(std::move(passage));
  }
  presence_program = &programs.marking();
}

// By the plan's own programs; what a flow keeps goes on, where the same tensors still travel by the same way.
std::unique_ptr<Flow> Exchange::Impl::flow_for(const Unit& unit, const ExchangePlan& plan_before, std::vector<std::unique_ptr<Passage>>& passed) {
  auto flow = way_named(unit.way)->flow({runner, programs, plan, unit, iterations});
  for (std::size_t u = 0; u < passed.size(); ++u) {
    if (plan_before.units[u].way != unit.way || plan_before.units[u].tensors != unit.tensors) continue;
    const auto old = passed[u]->flow->kept();
    const auto kept = flow->kept();
    for (std::size_t k = 0; k < kept.size(); ++k) std::copy_n(old[k].data, old[k].count * size_of(old[k].type), kept[k].data);
    passed[u]->flow.reset();  // its memory is as much as the new one's
    break;
  }
  return flow;
}

// Every handler and posted piece of work is counted, so that the destructor knows when nothing refers to it any more.
void Exchange::Impl::post(std::function<void()> fn) {
  running.fetch_add(1, std::memory_order_acq_rel);
  transport.post([this, fn = std::move(fn)] {
    fn();
    closed();
  });
}

void Exchange::Impl::set_failure(const net::Failure& why) {
  const std::lock_guard lock(failure_mutex);
  if (!failure) failure = why;
  failed.store(true, std::memory_order_release);
}

void Exchange::Impl::fail(const net::Failure& why) {
  set_failure(why);
  post([this, why] { transport.fail(*why); });
}

void Exchange::Impl::require_no_failure() const {
  if (!failed.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(failure_mutex);
  throw Error(*failure);
}

void Exchange::Impl::begin(double weight, const Told& told, std::uint32_t turn_in) {
  require_no_failure();
  open = true;
  turn = turn_in;
  sequence = next_sequence;
  next_sequence += operations;
  unaccounted = 0;
  accounted.assign(plan.tensors.size(), true);
  present.assign(plan.tensors.size(), 0);
  for (std::size_t u = 0; u < passages.size(); ++u) {
    if (plan.units[u].turn != turn) continue;
    passages[u]->missing = plan.units[u].tensors.size();
    unaccounted += plan.units[u].tensors.size();
    for (const auto tensor : plan.units[u].tensors) accounted[tensor] = false;
  }
  transport.doing("step " + std::to_string(iteration) + ", exchanging gradients");
  post([this, own = Announcement{iteration, plan_hash, weight, told}, operation = net::operation_in(channel, sequence)] {
    running.fetch_add(1, std::memory_order_acq_rel);
    roll_call.start(operation, own, [this](const net::Failure& why) {
      roll_called(why);
      closed();
    });
  });
}

// Takes note of one tensor of the open iteration, which this member has or not.
void Exchange::Impl::note(std::uint32_t tensor, bool here) {
  require_no_failure();
  if (!open || accounted[tensor]) {
    throw Error(Code::invalid_argument, "gradient " + plan.tensors[tensor].name + (open ? " was produced twice" : " was produced outside of a step"),
                "step " + std::to_string(iteration), "run one backward pass a step, or accumulate under model.no_sync()");
  }
  accounted[tensor] = true;
  present[tensor] = here;
}

// The last tensor of a unit sends it off.
void Exchange::Impl::account(std::uint32_t tensor, const Contribution& own) {
  note(tensor, !std::holds_alternative<std::monostate>(own));
  const auto unit = unit_of[tensor];
  auto& passage = *passages[unit];
  wait_for_return(passage);
  passage.flow->take(place_of[tensor], own);
  if (--passage.missing == 0) {
    passage.produced_at = steady_now();
    post([this, unit] {
      if (roll_gate.open_for(iteration + 1)) {
        start(unit);
      } else {
        ready_units.push_back(unit);
      }
    });
  }
  if (--unaccounted == 0) post([this] { start_presence(); });
}

// Blocks the caller until the gate is open for this version, usually the latest iteration's. The time it takes is exposed: up to the roll call it is the
// fault of whoever answered last, after that of the network.
void Exchange::Impl::wait(const Gate& gate, Gate::Version version, const std::string& what, std::uint32_t event_name) {
  if (gate.open_for(version) && net::goes_on(transport.on_peer_lost())) return;  // it is here, whoever was lost since
  const auto settled = [&] { return gate.open_for(version) || failed.load(std::memory_order_acquire); };
  if (settled()) return require_no_failure();
  const auto begin = steady_now();
  const auto deadline = transport.now() + patience;
  const auto note = [&](Instant from, Instant to, std::int32_t peer) {
    if (to > from) Events::local().record({EventKind::exposed, from, to, static_cast<std::int64_t>(iteration), peer, 0, event_name});
  };
  auto waited_for_peer = begin;
  if (!roll_gate.open_for(version)) {
    const auto called = [&] { return roll_gate.open_for(version) || settled(); };
    transport.drive(called, deadline);
    waited_for_peer = steady_now();
    if (roll_gate.open_for(version)) note(begin, waited_for_peer, static_cast<std::int32_t>(roll_call.last()));
  }
  const bool in_time = transport.drive(settled, deadline);
  const auto end = steady_now();
  note(waited_for_peer, end, -1);
  waited += seconds_between(begin, end);
  waited_for_means += seconds_between(waited_for_peer, end);
  require_no_failure();
  if (!in_time) late(what);
}

void Exchange::Impl::give_back(std::uint32_t tensor, const std::byte* part, std::byte* whole) {
  require_no_failure();
  const auto unit = unit_of[tensor];
  auto& passage = *passages[unit];
  auto* const flow = dynamic_cast<OwnedFlow*>(passage.flow.get());
  if (flow == nullptr) throw Error(Code::internal, "a part is given back of what members step whole, by " + plan.units[unit].way, passage.label);
  passage.stepped = begun();
  passage.returning = net::operation_in(channel, sequence + passage.operation + 1);
  collective::Run run = run_of(unit);
  run.operation = passage.returning;
  run.priority.value = plan.tensors[tensor].first_use;
  run.label = "new values of " + passage.label;
  post([this, &passage, flow, part, whole, run, version = passage.stepped, of = iteration, since = steady_now()] {
    running.fetch_add(1, std::memory_order_acq_rel);
    flow->courier().count_anew();
    flow->give_back(part, whole, run, [this, &passage, version, of, since](const net::Failure& why) {
      if (why) set_failure(why);
      left(passage, of, since);
      if (!why) passage.returned.open(version);
      closed();
    });
  });
}

void Exchange::Impl::wait_for_return(const Passage& passage) { wait(passage.returned, passage.stepped, passage.label, passage.event_name); }

std::optional<Mean> Exchange::Impl::mean(std::uint32_t tensor) {
  const auto& passage = *passages[unit_of[tensor]];
  wait(passage.gate, passage.label, passage.event_name);
  if (!present[tensor]) {
    wait(presence_gate, "presence of gradients", passage.event_name);
    if (!present_anywhere[tensor]) return std::nullopt;
  }
  return passage.flow->mean(place_of[tensor]);
}

// Waits for the roll call.
const std::vector<Announcement>& Exchange::Impl::announced(const std::string& what) {
  wait(roll_gate, what, Events::local().intern("weights"));
  return roll_call.answers();
}

// A deadline passed while every member is alive: says which operations are open and on whom they wait.
void Exchange::Impl::late(const std::string& what) {
  const auto open_operations = net::call(transport, [&on = runner] {
    std::string lines;
    for (const auto& line : on.waiting()) lines += (lines.empty() ? "" : "; ") + line;
    return lines;
  }).value_or("");
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience).count();
  const auto error = std::make_shared<const Error>(
      Code::timeout,
      what + " did not arrive within " + std::to_string(seconds) + " s: " +
          (open_operations.empty() ? "a member has not reached this step" : open_operations),
      "step " + std::to_string(iteration), std::string("raise SHOAL_TIMEOUT if a member may be this slow") + (net::goes_on(transport.on_peer_lost()) ? "" : "; model.join() if one has fewer batches"));
  fail(error);  // the others wait for what does not come, too
  throw Error(*error);
}

Exchange::Exchange(collective::Runner& runner, std::uint16_t channel, ExchangePlan plan, Nanoseconds patience, const Begin& begin)
    : impl_(std::make_unique<Impl>(runner, channel, patience)) {
  impl_->iteration = begin.iteration;
  continues(begin.before);
  impl_->next_sequence = begin.generation << kGenerationShift;
  impl_->take(std::move(plan));
  if (net::goes_on(impl_->transport.on_peer_lost())) impl_->post([impl = impl_.get()] { impl->listen_for_losses(); });
}

Exchange::~Exchange() {
  auto& impl = *impl_;
  const auto why = std::make_shared<const Error>(Code::cancelled, "the exchange is closing");
  impl.post([&impl, why] {
    *impl.listener = nullptr;
    for (std::uint64_t i = 1; impl.open && i < impl.operations; ++i) {
      impl.runner.cancel(net::operation_in(impl.channel, impl.sequence + i), why);
    }
    for (const auto& passage : impl.passages) {
      passage->flow->cancel(why);
      if (!passage->returned.open_for(passage->stepped)) impl.runner.cancel(passage->returning, why);
    }
    if (impl.open) impl.transport.close(net::operation_in(impl.channel, impl.sequence), why);
  });
  const bool quiet = net::wait_for(impl.transport, [&impl] { return impl.running.load(std::memory_order_acquire) == 0; }, net::kLoopAnswers);
  // A handler may still come and would find its memory gone: rather leak than crash.
  [[maybe_unused]] const Impl* leaked = quiet ? nullptr : impl_.release();
}

const ExchangePlan& Exchange::plan() const { return impl_->plan; }
std::uint64_t Exchange::iteration() const { return impl_->iteration; }
std::uint64_t Exchange::before() const { return impl_->iterations - impl_->iteration; }
void Exchange::continues(std::uint64_t before) { impl_->iterations = before + impl_->iteration; }
void Exchange::begin(double weight, const Told& told, std::uint32_t turn) { impl_->begin(weight, told, turn); }
void Exchange::produced(std::uint32_t tensor, const void* data) { impl_->account(tensor, static_cast<const std::byte*>(data)); }
void Exchange::produced(std::uint32_t tensor, const factor::Pair& pair) { impl_->account(tensor, pair); }
void Exchange::produced(std::uint32_t tensor, const Rows& rows) { impl_->account(tensor, rows); }
void Exchange::produced(std::uint32_t tensor, const Strip& strip) { impl_->account(tensor, strip); }
void Exchange::absent(std::uint32_t tensor) { impl_->account(tensor, std::monostate()); }

bool Exchange::by_factors(std::uint32_t tensor) const { return impl_->plan.units[impl_->unit_of[tensor]].way == kByFactors; }

void Exchange::replan(ExchangePlan plan) { impl_->take(std::move(plan)); }

void Exchange::predict(ExchangePlan plan) { impl_->plan = std::move(plan); }

double Exchange::waited() const { return impl_->waited; }
double Exchange::waited_for_means() const { return impl_->waited_for_means; }

const void* Exchange::result(std::uint32_t tensor) {
  const auto mean = impl_->mean(tensor);
  return mean ? std::get<const std::byte*>(*mean) : nullptr;
}

bool Exchange::arrived(std::uint32_t tensor) const {
  const auto& impl = *impl_;
  return impl.passages[impl.unit_of[tensor]]->gate.open_for(impl.begun()) && (impl.present[tensor] || impl.presence_gate.open_for(impl.begun()));
}

Instant Exchange::last_arrival() const { return impl_->last_arrival; }

const factor::Gathered* Exchange::factors(std::uint32_t tensor) {
  const auto mean = impl_->mean(tensor);
  return mean ? std::get<const factor::Gathered*>(*mean) : nullptr;
}

const Rows* Exchange::rows(std::uint32_t tensor) {
  const auto mean = impl_->mean(tensor);
  return mean ? std::get<const Rows*>(*mean) : nullptr;
}

std::shared_ptr<const void> Exchange::memory(std::uint32_t tensor) const { return impl_->passages[impl_->unit_of[tensor]]->flow->memory(); }

std::vector<std::pair<std::uint32_t, Kept>> Exchange::kept() {
  std::vector<std::pair<std::uint32_t, Kept>> all;
  for (std::size_t u = 0; u < impl_->passages.size(); ++u) {
    for (auto& kept : impl_->passages[u]->flow->kept()) all.emplace_back(impl_->plan.units[u].tensors.front(), std::move(kept));
  }
  return all;
}

std::vector<double> Exchange::weights() {
  std::vector<double> weights;
  for (const auto& a : impl_->announced("the weights of all members")) weights.push_back(a.weight);
  return weights;
}

std::vector<double> Exchange::prescales() {
  auto scales = weights();
  if (!impl_->weights.empty()) return scales;
  for (double& scale : scales) scale = scale > 0 ? 1 : 0;
  return scales;
}

std::uint64_t Exchange::asked() {
  std::uint64_t asks = 0;
  for (const auto& a : impl_->announced("what members ask of all")) asks |= a.told.asks;
  return asks;
}

std::vector<std::uint64_t> Exchange::digests() {
  std::vector<std::uint64_t> digests;
  for (const auto& a : impl_->announced("digests of all members")) digests.push_back(a.told.digest);
  return digests;
}

Took Exchange::slowest() {
  const auto& all = impl_->announced("how long members took");
  Took slowest = std::ranges::max(all, {}, [](const Announcement& a) { return a.told.took.seconds(); }).told.took;
  for (const auto& a : all) slowest.processor = std::max(slowest.processor, a.told.took.processor);
  return slowest;
}

void Exchange::end() {
  auto& impl = *impl_;
  impl.post([&impl, own = Announcement{.iteration = impl.iteration, .plan_hash = impl.plan_hash, .ended = 1},
             operation = net::operation_in(impl.channel, impl.next_sequence)] { impl.roll_call.end(operation, own); });
}

void Exchange::fail(const Error& why) { impl_->fail(std::make_shared<Error>(why)); }

void Exchange::give_back(std::uint32_t tensor, const void* part, void* whole) {
  impl_->give_back(tensor, static_cast<const std::byte*>(part), static_cast<std::byte*>(whole));
}
void Exchange::returned(std::uint32_t tensor) { impl_->wait_for_return(*impl_->passages[impl_->unit_of[tensor]]); }

void Exchange::settle() {
  auto& impl = *impl_;
  if (!impl.open) return;
  for (std::size_t u = 0; u < impl.passages.size(); ++u) {
    const auto& passage = *impl.passages[u];
    if (impl.plan.units[u].turn == impl.turn) impl.wait(passage.gate, passage.label, passage.event_name);
  }
  impl.wait(impl.presence_gate, "presence of gradients", Events::local().intern("presence"));
}

void Exchange::commit() {
  auto& impl = *impl_;
  if (!impl.open) return;
  settle();
  impl.open = false;
  impl.transport.doing("step " + std::to_string(impl.iteration) + " done");
  ++impl.iteration;
  ++impl.iterations;
}

}  // namespace shoal::exchange
