// The loop's side of an exchange: the roll call, each unit's way, and presence.
#include <algorithm>

#include "shoal/core/event.h"
#include "shoal/exchange/exchange_impl.h"

namespace shoal::exchange {

// The runner ends its own operations; whoever waits for something else hears it here.
void Exchange::Impl::listen_for_losses() {
  transport.on_lost([listener = listener](net::Rank lost, const net::Failure& why) {
    Impl* const impl = *listener;
    if (impl && std::ranges::find(impl->runner.members(), lost) != impl->runner.members().end()) impl->set_failure(why);
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
  nobody = active == 0;
  // Equal weights need no multiplication, and so give the plain mean bit for bit.
  scaling = equal ? collective::Scaling{1, static_cast<double>(std::max<std::size_t>(active, 1))}
                  : collective::Scaling{answers[runner.rank()].weight, total};
  weights.clear();
  for (const auto& a : answers) {
    if (!equal) weights.push_back(a.weight);
  }
  roll_gate.open(iteration + 1);
  for (auto unit : ready_units) start(unit);
  ready_units.clear();
}

void Exchange::Impl::start(std::size_t unit) {
  auto& passage = *passages[unit];
  if (nobody) {
    last_arrival = steady_now();
    return passage.gate.open(iteration + 1);
  }
  Departure departure;
  departure.weights = weights;
  departure.run = run_of(unit);
  departure.run.scaling = scaling;
  running.fetch_add(1, std::memory_order_acq_rel);
  passage.flow->courier().count_anew();
  passage.flow->start(departure, [this, &passage](const net::Failure& why) {
    if (why) set_failure(why);
    left(passage, iteration, passage.produced_at);
    last_arrival = steady_now();
    if (!why) passage.gate.open(iteration + 1);
    closed();
  });
}

// Of its first operation. The caller calls it, too, for what it gives back in the open iteration.
collective::Run Exchange::Impl::run_of(std::size_t unit) const {
  const auto& passage = *passages[unit];
  collective::Run run;
  run.type = plan.tensors[plan.units[unit].tensors.front()].type;
  run.slice_bytes = plan.units[unit].slice_bytes;
  run.priority = {passage.bytes <= net::kUrgentLimit ? net::Class::urgent : net::Class::bulk, plan.units[unit].priority, iteration};
  run.operation = net::operation_in(channel, sequence + passage.operation);
  run.label = passage.label;
  return run;
}

// One of its operations is done.
void Exchange::Impl::left(const Passage& passage, std::uint64_t iteration, Instant since) {
  if (!Events::local().enabled()) return;
  Events::local().record({EventKind::exchange, since, steady_now(), static_cast<std::int64_t>(iteration), -1,
                          static_cast<double>(passage.flow->courier().sent()), passage.event_name});
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

}  // namespace shoal::exchange
