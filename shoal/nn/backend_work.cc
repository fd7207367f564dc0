#include "shoal/nn/backend_work.h"

#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <cstdio>

#include "shoal/core/text.h"
#include "shoal/nn/backend_completions.h"
#include "shoal/nn/staging.h"
#include "shoal/nn/torch_error.h"

namespace shoal::nn {
namespace {

constexpr Nanoseconds kGrace = std::chrono::seconds(10);  // for the end of an operation whose deadline has passed

// The failure itself is told in any case.
void write_record(std::uint64_t job_rank) {
  try {
    FlightRecorder::local().write(job_rank);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shoal: rank %llu could not write its flight record: %s\n", static_cast<unsigned long long>(job_rank), error.what());
  }
}

}  // namespace

Work::Work(std::shared_ptr<Group> group, Plan plan, std::string name, std::uint64_t sequence)
    : c10d::Work(static_cast<int>(group->rank()), plan.type, plan.title, plan.inputs), group_(std::move(group)),
      plan_(std::move(plan)), name_(std::move(name)), sequence_(sequence), parts_left_(plan_.parts) {}

void Work::part_done(c10::intrusive_ptr<Work> work, const net::Failure& failure, int source_rank) {
  if (failure) {
    const std::lock_guard lock(work->future_mutex_);
    if (!work->failure_) work->failure_ = failure;
  }
  if (source_rank >= 0) work->source_rank_ = source_rank;
  if (--work->parts_left_ > 0) return;
  if (work->failure_ && work->failure_->code() != Code::cancelled && FlightRecorder::local().claim_dump()) {
    // Before anybody learns of the failure and ends the process.
    Completions::local().push([work = std::move(work)]() mutable {
      write_record(work->plan_.job_rank);
      complete_on_loop(std::move(work));
    });
    return;
  }
  if (work->failure_ || !work->plan_.epilogue) return complete(std::move(work));
  Completions::local().push([work = std::move(work)]() mutable {
    work->run_epilogue();
    complete_on_loop(std::move(work));
  });
}

// Completion happens on the loop, where a waiting caller is sure to notice it.
void Work::complete_on_loop(c10::intrusive_ptr<Work> work) {
  const auto group = work->group_;
  if (!group->post([work]() mutable { complete(std::move(work)); })) complete(std::move(work));
}

void Work::run_epilogue() {
  try {
    plan_.epilogue();
  } catch (...) {
    failure_ = failure_of(std::current_exception(), name_);
  }
}

void Work::complete(c10::intrusive_ptr<Work> work) {
  if (work->plan_.recorded && !work->failure_) FlightRecorder::local().completed(*work->plan_.recorded);
  work->finish(work->failure_ ? to_torch(*work->failure_) : nullptr);
  bool asked = false;
  {
    const std::lock_guard lock(work->future_mutex_);
    work->ready_.store(true, std::memory_order_release);
    asked = work->future_.defined();
  }
  const bool last = work.use_count() == 1;
  if (!asked && !last) return;
  Completions::local().push([work = std::move(work), asked] {
    if (asked) work->settle(work->future_);
  });
}

bool Work::wait(std::chrono::milliseconds timeout) {
  const bool own_deadline = timeout == kNoTimeout;
  const Nanoseconds patience = own_deadline ? plan_.patience + kGrace : Nanoseconds(timeout);
  const auto ready = [this] { return ready_.load(std::memory_order_acquire); };
  try {
    if (!ready() && !group_->wait(ready, patience)) {
      std::string why = "not done within " + show_seconds(Seconds(patience).count());
      if (const std::string waits = group_->waiting(); !waits.empty()) why += "; waiting for " + waits;
      throw Error(Code::timeout, why, name_);
    }
  } catch (const Error& error) {
    std::rethrow_exception(to_torch(error));
  }
  if (const std::exception_ptr failed = exception()) std::rethrow_exception(failed);
  for (const c10::Stream& stream : plan_.homewards) come_after(stream);
  return true;
}

void Work::abort() { group_->abort(Error(Code::cancelled, "rank " + std::to_string(rank_) + " aborted it", name_)); }

std::vector<at::Tensor> Work::result() {
  TORCH_CHECK(isCompleted(), "the result of ", name_, " was asked for before it was done");
  return plan_.outputs.empty() ? std::vector<at::Tensor>{} : plan_.outputs.front();
}

c10::IValue Work::value() const {
  if (plan_.outputs.empty()) return c10::IValue(std::vector<at::Tensor>{});
  if (plan_.outputs.size() == 1) return c10::IValue(plan_.outputs.front());
  return c10::IValue(plan_.outputs);
}

void Work::settle(const c10::intrusive_ptr<c10::ivalue::Future>& future) const {
  if (const std::exception_ptr failed = exception()) {
    future->setError(failed);
  } else {
    const c10::MultiStreamGuard on(plan_.homewards);  // who waits for the future comes after these
    future->markCompleted(value());
  }
}

// Made on demand, so that operations nobody chains on cost no hand-over to another thread.
c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  const std::unique_lock lock(future_mutex_);
  if (!future_) {
    const auto tensors = c10::ListType::create(c10::TensorType::get());
    std::vector<c10::Device> devices;
    for (const c10::Stream& stream : plan_.homewards) devices.push_back(stream.device());
    future_ = c10::make_intrusive<c10::ivalue::Future>(plan_.outputs.size() > 1 ? c10::TypePtr(c10::ListType::create(tensors)) : c10::TypePtr(tensors),
                                                       std::move(devices));
    if (ready_.load(std::memory_order_acquire)) settle(future_);  // no callback can hang on it yet
  }
  return future_;
}

}  // namespace shoal::nn
