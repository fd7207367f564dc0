// The loop's side of an exchange: the roll call, each unit's way, and presence.
#include <algorithm>

#include "shoal/core/event.h"
#include "shoal/exchange/exchange_impl.h"

namespace shoal::exchange {

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
  weights.clear();
  for (const auto& a : answers) {
    if (!equal) weights.push_back(a.weight);
  }
  roll_gate.open(iteration + 1);
  for (auto unit : ready_units) start_flow(unit);
  ready_units.clear();
}

void Exchange::Impl::start_flow(std::size_t unit) {
  auto& flow = *flows[unit];
  collective::Run run;
  run.type = plan.tensors[plan.units[unit].tensors.front()].type;
  run.scaling = scaling;
  run.slice_bytes = plan.units[unit].slice_bytes;
  run.priority = {flow.bytes <= net::kUrgentLimit ? net::Class::urgent : net::Class::bulk, plan.units[unit].priority, iteration};
  run.operation = net::operation_in(channel, sequence + flow.operation);
  run.label = flow.label;
  running.fetch_add(1, std::memory_order_acq_rel);
  const auto done = [this, &flow](const net::Failure& why) {
    if (why) set_failure(why);
    if (Events::local().enabled()) {
      Events::local().record({EventKind::exchange, flow.produced_at, steady_now(), static_cast<std::int64_t>(iteration), -1,
                              static_cast<double>(flow.bytes), flow.event_name});
    }
    last_arrival = steady_now();
    if (!why) flow.gate.open(iteration + 1);
    closed();
  };
  if (!flow.factors) return runner.start(*flow.program, flow.layout, {flow.input, flow.output}, run, done);
  flow.factors->start(flow.pair, weights, run, done);
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
