// One operation of the c10d backend under way: what `async_op=True` returns.
//
// It keeps the tensors of the operation alive until it is destroyed. It completes on the transport's loop; whatever
// may run a user's code or take the GIL (a future's callbacks, the last reference to a tensor) runs on the
// completion thread instead. Threads: any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "shoal/nn/flight_recorder.h"
#include "shoal/nn/group/group.h"

namespace shoal::nn {

class Work final : public c10d::Work {
 public:
  struct Plan {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    const char* title = "";                        // for the profiler: "shoal:all_reduce"
    std::vector<at::Tensor> inputs;                // for the profiler, and kept alive
    std::vector<std::vector<at::Tensor>> outputs;  // the future's value
    std::vector<at::Tensor> held;                  // kept alive: flat copies and the like
    std::function<void()> epilogue;                // after success, before completion: copies results home
    std::vector<c10::Stream> homewards;            // on which the epilogue copies to devices: who reads results comes after them
    Nanoseconds patience{};                        // after which the operation ends by itself
    std::uint32_t parts = 1;                       // operations of the group that it consists of
    std::optional<int> peer;                       // of a message; -1: anybody
    std::optional<FlightRecorder::Id> recorded;
    std::uint64_t job_rank = 0;                    // whose dump it is, should it be the first to fail
  };
  // name: for error lines; sequence: of its first collective, 0 where it has none.
  Work(std::shared_ptr<Group> group, Plan plan, std::string name, std::uint64_t sequence);

  // One part is done; on the loop, or of a part that never began anywhere.
  static void part_done(c10::intrusive_ptr<Work> work, const net::Failure& failure, int source_rank = -1);
  Nanoseconds patience() const { return plan_.patience; }

  bool wait(std::chrono::milliseconds timeout) override;
  void abort() override;
  void synchronize() override { wait(kNoTimeout); }
  std::vector<at::Tensor> result() override;
  int sourceRank() const override { return source_rank_.load(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  const std::vector<c10::Stream>& homewards() const { return plan_.homewards; }
  std::uint64_t getSequencenumber() const override { return sequence_; }

 private:
  void run_epilogue();
  static void complete_on_loop(c10::intrusive_ptr<Work> work);
  static void complete(c10::intrusive_ptr<Work> work);
  c10::IValue value() const;
  void settle(const c10::intrusive_ptr<c10::ivalue::Future>& future) const;

  const std::shared_ptr<Group> group_;
  Plan plan_;
  const std::string name_;
  const std::uint64_t sequence_;
  std::atomic<std::uint32_t> parts_left_;
  net::Failure failure_;                    // guarded by future_mutex_ while parts are left
  std::atomic<int> source_rank_{-1};
  std::atomic<bool> ready_{false};
  std::mutex future_mutex_;                 // guards future_, ready_ against it, and failure_
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace shoal::nn
