#include "shoal/nn/backend_coalesced.h"

#include <ATen/core/ivalue.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>

#include "shoal/nn/backend.h"

namespace shoal::nn {
namespace {

std::vector<at::Tensor> results_of(const std::vector<c10::intrusive_ptr<c10d::Work>>& works) {
  std::vector<at::Tensor> all;
  for (const auto& work : works) {
    for (const at::Tensor& tensor : work->result()) all.push_back(tensor);
  }
  return all;
}

}  // namespace

CoalescedWork::CoalescedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works)
    : c10d::Work(rank, c10d::OpType::COALESCED), works_(std::move(works)) {}

bool CoalescedWork::isCompleted() {
  return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->isCompleted(); });
}

std::exception_ptr CoalescedWork::exception() const {
  for (const auto& work : works_) {
    if (const std::exception_ptr failed = work->exception()) return failed;
  }
  return nullptr;
}

bool CoalescedWork::wait(std::chrono::milliseconds timeout) {
  for (const auto& work : works_) work->wait(timeout);
  return true;
}

void CoalescedWork::abort() {
  for (const auto& work : works_) work->abort();
}

std::vector<at::Tensor> CoalescedWork::result() { return results_of(works_); }

c10::intrusive_ptr<c10::ivalue::Future> CoalescedWork::getFuture() {
  const auto type = c10::ListType::create(c10::TensorType::get());
  c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(c10::FutureType::create(type));
  std::vector<c10::Stream> homewards;  // of all of them
  std::vector<c10::Device> devices;
  for (const auto& work : works_) {
    futures.push_back(work->getFuture());
    const auto* const ours = dynamic_cast<const nn::Work*>(work.get());
    for (const c10::Stream& stream : ours ? ours->homewards() : std::vector<c10::Stream>{}) {
      if (std::ranges::find(homewards, stream) != homewards.end()) continue;
      homewards.push_back(stream);
      devices.push_back(stream.device());
    }
  }
  const auto all = c10::make_intrusive<c10::ivalue::Future>(type, std::move(devices));
  c10::collectAll(futures)->addCallback([works = works_, homewards, all](c10::ivalue::Future& done) {
    if (done.hasError()) return all->setError(done.exception_ptr());
    const c10::MultiStreamGuard on(homewards);  // who waits for the future comes after these
    all->markCompleted(results_of(works));
  });
  return all;
}

// --- the backend's side

void Backend::startCoalescing() {
  forget_coalescing();
  const std::lock_guard lock(coalescing_mutex_);
  coalescing_.try_emplace(std::this_thread::get_id());
}

Backend::Result Backend::endCoalescing() {
  const std::lock_guard lock(coalescing_mutex_);
  const auto works = coalescing_.extract(std::this_thread::get_id());
  TORCH_CHECK(works, "shoal: endCoalescing without a beginning in this thread, or after an operation that could not start");
  return c10::make_intrusive<CoalescedWork>(rank_, std::move(works.mapped()));
}

void Backend::coalesce(const Result& work) {
  const std::lock_guard lock(coalescing_mutex_);
  const auto open = coalescing_.find(std::this_thread::get_id());
  if (open != coalescing_.end()) open->second.push_back(work);
}

void Backend::forget_coalescing() {
  decltype(coalescing_)::node_type open;  // let go outside the lock: its tensors may be Python's
  const std::lock_guard lock(coalescing_mutex_);
  open = coalescing_.extract(std::this_thread::get_id());
}

}  // namespace shoal::nn
