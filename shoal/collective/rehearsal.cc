#include "shoal/collective/rehearsal.h"

#include "shoal/collective/build.h"

namespace shoal::collective {

namespace {
constexpr std::uint32_t kSliceBytes = 128 * 1024;
}

Rehearsal::Rehearsal(Runner& runner, std::uint64_t operation, Instant deadline, std::string label)
    : runner_(runner), operation_(operation), deadline_(deadline), label_(std::move(label)) {}

void Rehearsal::all_reduce(const std::string& program, ReduceOp op, std::vector<double>& values,
                           std::function<void(const net::Failure&, double)> then) {
  contribution_ = values;
  const Verified plan = verify(build(Collective::all_reduce, program, size()));
  Run run;
  run.type = DType::f64;
  run.op = op;
  run.operation = next_operation();
  run.slice_bytes = kSliceBytes;
  if (values.size() * sizeof(double) <= net::kUrgentLimit) run.priority.cls = net::Class::urgent;
  run.label = label_;
  const std::uint64_t timer =
      expire([this, operation = run.operation](const net::Failure& why) { runner_.cancel(operation, why); });
  const Instant begin = transport().now();
  runner_.start(plan, Layout::even(plan.program(), rank(), values.size()),
                {reinterpret_cast<const std::byte*>(contribution_.data()), reinterpret_cast<std::byte*>(values.data())}, run,
                [this, begin, timer, then = std::move(then)](const net::Failure& why) {
                  transport().cancel(timer);
                  then(why, Seconds(transport().now() - begin).count());
                });
}

std::uint64_t Rehearsal::expire(std::function<void(const net::Failure&)> end) {
  return transport().at(deadline_, [end = std::move(end), label = label_] {
    end(std::make_shared<const Error>(Code::timeout, "not done in time", label,
                                      "a member may be missing or its link very slow"));
  });
}

}  // namespace shoal::collective
