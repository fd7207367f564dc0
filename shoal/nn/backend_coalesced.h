// Operations that were called between startCoalescing() and endCoalescing(), as one: done when all of them are, failed
// with the first of them, in the order of the calls, that has failed. Threads: any.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

namespace shoal::nn {

class CoalescedWork final : public c10d::Work {
 public:
  CoalescedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works);

  bool isCompleted() override;
  bool isSuccess() const override { return !exception(); }
  std::exception_ptr exception() const override;
  bool wait(std::chrono::milliseconds timeout) override;  // for each
  void synchronize() override { wait(kNoTimeout); }
  void abort() override;
  std::vector<at::Tensor> result() override;  // of all, in their order
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;  // its value: as result()

 private:
  const std::vector<c10::intrusive_ptr<c10d::Work>> works_;
};

}  // namespace shoal::nn
