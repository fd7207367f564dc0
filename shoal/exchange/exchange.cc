#include "shoal/exchange/exchange.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "shoal/collective/build.h"
#include "shoal/core/event.h"
#include "shoal/exchange/flow.h"
#include "shoal/exchange/roll_call.h"
#include "shoal/net/call.h"

namespace shoal::exchange {
using collective::Collective;

// Two threads share this: the caller's and the transport's loop.
//
// Invariants
// 1. The caller alone writes plan, programs, flows (but for what 3 names), unit_of, place_of, iteration, sequence, open and what is
//    accounted; the loop alone writes roll_call, scaling and ready_units.
// 2. The loop reads the caller's members only in work of the open iteration. All of it was posted after begin() (a post hands over
//    what was written before it), and the caller writes them again only after commit() has seen every gate open: the roll
//    call's, each unit's and presence's are opened by the last piece of that work that reads them.
// 3. A flow belongs to the caller from begin() until its last tensor is accounted and it is posted; then to the loop until
//    its gate opens. `present` goes the same way with start_presence() and presence_gate.
// 4. The caller reads what the loop wrote (results, present_anywhere, the roll call's answers) only behind the gate for it.
// 5. After a failure every call throws before it writes anything of this; the destructor waits
//    until `running` says that the loop refers to nothing here.
struct Exchange::Impl {
  Impl(collective::Runner& runner_in, std::uint16_t channel_in, Nanoseconds patience_in)
      : runner(runner_in), transport(runner_in.transport()), channel(channel_in), patience(patience_in),
        roll_call(transport, runner_in.members(), runner_in.rank()) {}

  // --- the caller's side
  void take(ExchangePlan next);
  void begin(double weight, std::uint64_t asks);
  void account(std::uint32_t tensor, const void* data, bool here);
  Gate::Version begun() const { return iteration + (open ? 1 : 0); }  // the version that the latest iteration brings
  void wait(const Gate& gate, const std::string& what, std::uint32_t event_name);
  [[noreturn]] void late(const std::string& what);
  const collective::Verified& program(const std::string& way);
  void require_no_failure() const;
  void set_failure(const net::Failure& failure);

  // --- the loop's side
  void roll_called(const net::Failure& failure);
  void start_flow(std::size_t unit);
  void start_presence();
  void post(std::function<void()> fn);
  void closed() { running.fetch_sub(1, std::memory_order_acq_rel); }

  collective::Runner& runner;
  net::Transport& transport;
  const std::uint16_t channel;
  const Nanoseconds patience;

  // The caller's; the loop reads them (2).
  ExchangePlan plan;
  std::uint64_t plan_hash = 0;
  std::map<std::string, collective::Verified> programs;  // all-reduces by way
  std::vector<std::unique_ptr<Flow>> flows;              // by unit
  std::vector<std::uint32_t> unit_of, place_of;          // by tensor
  std::uint64_t iteration = 0, next_sequence = 0, sequence = 0;
  bool open = false;
  std::size_t unaccounted = 0;
  std::vector<bool> accounted;

  // Presence: which tensors any member has, so that a gradient absent everywhere stays absent.
  std::vector<std::uint8_t> present, present_anywhere;
  const collective::Verified* presence_program = nullptr;
  Gate presence_gate;

  // The loop's (1).
  RollCall roll_call;
  collective::Scaling scaling;
  std::vector<std::size_t> ready_units;  // waiting for the roll call

  // Both threads'.
  Gate roll_gate;                        // everybody has said that it is in the iteration
  std::atomic<bool> failed{false};
  std::atomic<int> running{0};           // posted or started, not yet closed
  mutable std::mutex failure_mutex;      // guards failure
  net::Failure failure;
};

void Exchange::Impl::take(ExchangePlan next) {
  plan = std::move(next);
  plan_hash = plan.hash();
  flows.clear();
  unit_of.assign(plan.tensors.size(), 0);
  place_of.assign(plan.tensors.size(), 0);
  accounted.assign(plan.tensors.size(), false);
  present.assign(plan.tensors.size(), 0);
  present_anywhere.assign(plan.tensors.size(), 0);
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const auto& unit = plan.units[u];
    auto flow = std::make_unique<Flow>(iteration);
    for (auto t : unit.tensors) {
      unit_of[t] = static_cast<std::uint32_t>(u);
      place_of[t] = static_cast<std::uint32_t>(flow->offset.size());
      flow->offset.push_back(flow->bytes);
      flow->bytes += plan.tensors[t].count * size_of(plan.tensors[t].type);
      flow->elements += plan.tensors[t].count;
    }
    flow->label = plan.name_of(unit);
    flow->event_name = Events::local().intern(flow->label);
    flow->program = &program(unit.way);
    flow->layout = collective::Layout::even(flow->program->program(), runner.rank(), flow->elements);
    flows.push_back(std::move(flow));
  }
  presence_program = &program(plan.ranks <= 8 ? "gather" : "recursive_doubling");
}

const collective::Verified& Exchange::Impl::program(const std::string& way) {
  const auto known = programs.find(way);
  if (known != programs.end()) return known->second;
  return programs.emplace(way, verify(build(Collective::all_reduce, way, plan.ranks))).first->second;
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

void Exchange::Impl::require_no_failure() const {
  if (!failed.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(failure_mutex);
  throw Error(*failure);
}

void Exchange::Impl::begin(double weight, std::uint64_t asks) {
  require_no_failure();
  open = true;
  sequence = next_sequence;
  next_sequence += plan.units.size() + 2;  // the roll call, presence, and a unit each
  unaccounted = plan.tensors.size();
  accounted.assign(plan.tensors.size(), false);
  for (std::size_t u = 0; u < flows.size(); ++u) {
    flows[u]->missing = plan.units[u].tensors.size();
    flows[u]->slot = 0;
  }
  transport.doing("step " + std::to_string(iteration) + ", exchanging gradients");
  post([this, own = Announcement{iteration, plan_hash, weight, asks}, operation = net::operation_in(channel, sequence)] {
    running.fetch_add(1, std::memory_order_acq_rel);
    roll_call.start(operation, own, [this](const net::Failure& why) {
      roll_called(why);
      closed();
    });
  });
}

void Exchange::Impl::roll_called(const net::Failure& why) {
  if (why) {
    set_failure(why);
    if (why->code() == Code::mismatch) transport.fail(*why);  // the others must not wait for an iteration that never ends
    return;
  }
  const auto& answers = roll_call.answers();
  double total = 0, first = 0;
  bool equal = true;
  std::size_t active = 0;
  for (const auto& a : answers) {
    if (a.weight == 0) continue;
    if (active++ == 0) first = a.weight;
    equal = equal && a.weight == first;
    total += a.weight;
  }
  // Equal weights need no multiplication, and so give the plain mean bit for bit.
  scaling = equal ? collective::Scaling{1, static_cast<double>(std::max<std::size_t>(active, 1))}
                  : collective::Scaling{answers[runner.rank()].weight, total};
  roll_gate.open(iteration + 1);
  for (auto unit : ready_units) start_flow(unit);
  ready_units.clear();
}

// Takes note of one tensor of the open iteration, which this member has or not. The last tensor of a unit sends it off.
void Exchange::Impl::account(std::uint32_t tensor, const void* data, bool here) {
  require_no_failure();
  const auto unit = unit_of[tensor];
  auto& flow = *flows[unit];
  if (!open || accounted[tensor]) {
    throw Error(Code::invalid_argument, "gradient " + plan.tensors[tensor].name + (open ? " was produced twice" : " was produced outside of a step"),
                "step " + std::to_string(iteration), "run one backward pass a step, or accumulate under model.no_sync()");
  }
  const auto bytes = plan.tensors[tensor].count * size_of(plan.tensors[tensor].type);
  accounted[tensor] = true;
  present[tensor] = here;
  if (here && flow.results[0].holds(data, flow.bytes)) flow.slot = 1;  // accumulated in the last result: keep it whole
  if (here && plan.units[unit].tensors.size() == 1) {
    flow.input = static_cast<const std::byte*>(data);
  } else {
    std::byte* const packed = flow.packed.get(flow.bytes);
    flow.input = packed;
    std::byte* place = packed + flow.offset[place_of[tensor]];
    if (here) {
      std::copy_n(static_cast<const std::byte*>(data), bytes, place);
    } else {
      std::fill_n(place, bytes, std::byte{0});
    }
  }
  if (--flow.missing == 0) {
    flow.output = flow.results[flow.slot].get(flow.bytes);  // here, where whoever asked for it hears that there is no memory
    flow.produced_at = steady_now();
    post([this, unit] {
      if (roll_gate.open_for(iteration + 1)) {
        start_flow(unit);
      } else {
        ready_units.push_back(unit);
      }
    });
  }
  if (--unaccounted == 0) post([this] { start_presence(); });
}

void Exchange::Impl::start_flow(std::size_t unit) {
  auto& flow = *flows[unit];
  collective::Run run;
  run.type = plan.tensors[plan.units[unit].tensors.front()].type;
  run.scaling = scaling;
  run.slice_bytes = plan.units[unit].slice_bytes;
  run.priority = {flow.bytes <= net::kUrgentLimit ? net::Class::urgent : net::Class::bulk, plan.units[unit].priority, iteration};
  run.operation = net::operation_in(channel, sequence + 2 + unit);
  run.label = flow.label;
  running.fetch_add(1, std::memory_order_acq_rel);
  runner.start(*flow.program, flow.layout, {flow.input, flow.output}, run, [this, &flow](const net::Failure& why) {
    if (why) set_failure(why);
    if (Events::local().enabled()) {
      Events::local().record({EventKind::exchange, flow.produced_at, steady_now(), static_cast<std::int64_t>(iteration), -1,
                              static_cast<double>(flow.bytes), flow.event_name});
    }
    if (!why) flow.gate.open(iteration + 1);
    closed();
  });
}

void Exchange::Impl::start_presence() {
  collective::Run run;
  run.type = DType::u8;
  run.op = ReduceOp::max;
  run.slice_bytes = net::kUrgentLimit;
  run.priority = {net::Class::urgent, 0, iteration};
  run.operation = net::operation_in(channel, sequence + 1);
  run.label = "presence of gradients";
  running.fetch_add(1, std::memory_order_acq_rel);
  runner.start(*presence_program, collective::Layout::even(presence_program->program(), runner.rank(), present.size()),
               {reinterpret_cast<const std::byte*>(present.data()), reinterpret_cast<std::byte*>(present_anywhere.data())}, run,
               [this](const net::Failure& why) {
                 if (why) set_failure(why);
                 if (!why) presence_gate.open(iteration + 1);
                 closed();
               });
}

// Blocks the caller until the gate is open for the latest iteration. The time it takes is exposed: up to the roll call it is the
// fault of whoever answered last, after that of the network.
void Exchange::Impl::wait(const Gate& gate, const std::string& what, std::uint32_t event_name) {
  const auto version = begun();
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
  note(waited_for_peer, steady_now(), -1);
  require_no_failure();
  if (!in_time) late(what);
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
      "step " + std::to_string(iteration), "raise SHOAL_TIMEOUT if a member may be this slow");
  set_failure(error);
  throw Error(*error);
}

Exchange::Exchange(collective::Runner& runner, std::uint16_t channel, ExchangePlan plan, Nanoseconds patience)
    : impl_(std::make_unique<Impl>(runner, channel, patience)) {
  impl_->take(std::move(plan));
}

Exchange::~Exchange() {
  auto& impl = *impl_;
  const auto why = std::make_shared<const Error>(Code::cancelled, "the exchange is closing");
  impl.post([&impl, why] {
    for (std::uint64_t i = 1; impl.open && i < impl.plan.units.size() + 2; ++i) {
      impl.runner.cancel(net::operation_in(impl.channel, impl.sequence + i), why);
    }
    if (impl.open) impl.transport.close(net::operation_in(impl.channel, impl.sequence), why);
  });
  const bool quiet = net::wait_for(impl.transport, [&impl] { return impl.running.load(std::memory_order_acquire) == 0; }, net::kLoopAnswers);
  // A handler may still come and would find its memory gone: rather leak than crash.
  [[maybe_unused]] const Impl* leaked = quiet ? nullptr : impl_.release();
}

const ExchangePlan& Exchange::plan() const { return impl_->plan; }
std::uint64_t Exchange::iteration() const { return impl_->iteration; }
void Exchange::begin(double weight, std::uint64_t asks) { impl_->begin(weight, asks); }
void Exchange::produced(std::uint32_t tensor, const void* data) { impl_->account(tensor, data, true); }
void Exchange::absent(std::uint32_t tensor) { impl_->account(tensor, nullptr, false); }

void Exchange::replan(ExchangePlan plan) { impl_->take(std::move(plan)); }

const void* Exchange::result(std::uint32_t tensor) {
  auto& impl = *impl_;
  auto& flow = *impl.flows[impl.unit_of[tensor]];
  impl.wait(flow.gate, flow.label, flow.event_name);
  if (!impl.present[tensor]) {
    impl.wait(impl.presence_gate, "presence of gradients", flow.event_name);
    if (!impl.present_anywhere[tensor]) return nullptr;
  }
  return flow.output + flow.offset[impl.place_of[tensor]];
}

std::shared_ptr<const void> Exchange::memory(std::uint32_t tensor) const {
  const auto& flow = *impl_->flows[impl_->unit_of[tensor]];
  return flow.results[flow.slot].share();
}

std::vector<double> Exchange::weights() {
  impl_->wait(impl_->roll_gate, "the weights of all members", Events::local().intern("weights"));
  std::vector<double> weights;
  for (const auto& a : impl_->roll_call.answers()) weights.push_back(a.weight);
  return weights;
}

std::uint64_t Exchange::asked() {
  impl_->wait(impl_->roll_gate, "what members ask of all", Events::local().intern("weights"));
  std::uint64_t asks = 0;
  for (const auto& a : impl_->roll_call.answers()) asks |= a.asks;
  return asks;
}

void Exchange::commit() {
  auto& impl = *impl_;
  if (!impl.open) return;
  for (auto& flow : impl.flows) impl.wait(flow->gate, flow->label, flow->event_name);
  impl.wait(impl.presence_gate, "presence of gradients", Events::local().intern("presence"));
  impl.open = false;
  impl.transport.doing("step " + std::to_string(impl.iteration) + " done");
  ++impl.iteration;
}

}  // namespace shoal::exchange
