#include "shoal/nn/backend_work.h"

#include <torch/csrc/Exceptions.h>

#include "shoal/core/text.h"
#include "shoal/nn/backend_completions.h"

namespace shoal::nn {
namespace {

// Crosses into Python as shoal.PeerLost, also from inside autograd, which knows PyTorchError but not pybind11's translators.
struct PeerLost final : torch::PyTorchError {
  using PyTorchError::PyTorchError;
  PyObject* python_type() override {
    static PyObject* const type = [] {  // kept for the life of the interpreter
      PyObject* const package = PyImport_ImportModule("shoal");
      PyObject* const found = package ? PyObject_GetAttrString(package, "PeerLost") : nullptr;
      if (!found) PyErr_Clear();
      return found ? found : PyExc_RuntimeError;
    }();
    return type;
  }
};

constexpr Nanoseconds kGrace = std::chrono::seconds(10);  // for the end of an operation whose deadline has passed

}  // namespace

std::exception_ptr to_torch(const Error& error) {
  if (error.code() == Code::peer_lost) return std::make_exception_ptr(PeerLost(error.what()));
  return std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, __LINE__}, error.what()));
}

Work::Work(std::shared_ptr<Group> group, Plan plan, std::string name, std::uint64_t sequence)
    : c10d::Work(static_cast<int>(group->rank()), plan.type, plan.title, plan.inputs), group_(std::move(group)),
      plan_(std::move(plan)), name_(std::move(name)), sequence_(sequence), parts_left_(plan_.parts) {}

void Work::part_done(c10::intrusive_ptr<Work> work, const net::Failure& failure, int source_rank) {
  if (failure && !work->failure_) work->failure_ = failure;
  if (source_rank >= 0) work->source_rank_ = source_rank;
  if (--work->parts_left_ > 0) return;
  if (work->failure_ || !work->plan_.epilogue) return complete(std::move(work));
  Completions::local().push([work = std::move(work)]() mutable {
    work->run_epilogue();
    // Completion happens on the loop, where a waiting caller is sure to notice it.
    if (!work->group_->post([work]() mutable { complete(std::move(work)); })) complete(std::move(work));
  });
}

void Work::run_epilogue() {
  try {
    plan_.epilogue();
  } catch (const std::exception& error) {
    failure_ = std::make_shared<const Error>(Code::internal, error.what(), name_);
  }
}

void Work::complete(c10::intrusive_ptr<Work> work) {
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
    future->markCompleted(value());
  }
}

// Made on demand, so that operations nobody chains on cost no hand-over to another thread.
c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  const std::unique_lock lock(future_mutex_);
  if (!future_) {
    const auto tensors = c10::ListType::create(c10::TensorType::get());
    future_ = c10::make_intrusive<c10::ivalue::Future>(plan_.outputs.size() > 1 ? c10::TypePtr(c10::ListType::create(tensors))
                                                                               : c10::TypePtr(tensors));
    if (ready_.load(std::memory_order_acquire)) settle(future_);  // no callback can hang on it yet
  }
  return future_;
}

}  // namespace shoal::nn
