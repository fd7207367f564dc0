// torch.distributed.init_process_group("shoal"): the c10d backend. Every collective and point-to-point call that gloo has
// on CPU, with gloo's meaning; DistributedDataParallel trains on it unmodified. Tensors of a device travel through the host's memory, and no copy is
// waited for (backend_departures.h): wait() has the device's current stream come after what it brings.
//
// It uses only the Store, rank and size it is given, never the environment's, so that subgroups have their own ranks.
// In which order contributions are added depends on size and members alone, so results do not depend on timing.
// Threads: any; members call collectives in the same order. Beyond gloo: every dtype where bytes only move, PREMUL_SUM, AVG
// of integers (truncated), lists with uneven sizes in reduce_scatter.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "shoal/nn/backend_departures.h"
#include "shoal/nn/backend_work.h"
#include "shoal/nn/staging.h"

namespace shoal::nn {

class Backend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using Result = c10::intrusive_ptr<c10d::Work>;

  // Who the members are in the job, for the flight recorder.
  struct Identity {
    std::string name;                  // PyTorch's
    std::vector<std::uint64_t> ranks;  // in the job, by rank; empty: the same
  };
  // Blocks until all members are connected, at most `timeout`, which is also the default of every operation. pretended: for tests, the CPU as a device
  // of that index.
  Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout,
          Identity identity, std::optional<c10::DeviceIndex> pretended = {});
  ~Backend() override;
  // Says goodbye in every group of this process: before the interpreter ends.
  static void close_all();

  const std::string getBackendName() const override { return "shoal"; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }
  void abort() override;
  void shutdown() override;

  // A group of some of the members. Those in `ranks` call split, and get nullptr if they are not among them; merge makes
  // one of members who share no group yet; shrink leaves members out, who may be gone (flags 1: it aborts this group first).
  bool supportsSplitting() const override { return true; }
  bool supportsShrinking() const override { return true; }
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& opts) override;
  c10::intrusive_ptr<c10d::Backend> merge(const c10::intrusive_ptr<c10d::Store>& store, const c10::intrusive_ptr<Options>& opts,
                                          const int& rank, const int& size) override;
  c10::intrusive_ptr<c10d::Backend> shrink(const std::vector<std::int64_t>& excluded, int flags,
                                           const c10::intrusive_ptr<Options>& opts) override;
  // Operations of the same thread in between start as they always do; the Work that the end gives is done when all of them
  // are. What an exception has left without an end is forgotten at the thread's next beginning, or when one of its operations
  // cannot start. A batch of messages (batch_isend_irecv) keeps one Work a message, as with gloo: so supportsCoalescing()
  // stays false.
  void startCoalescing() override;
  Result endCoalescing() override;

  Result broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;
  Result allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  Result allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) override;
  Result allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  Result reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  Result allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) override;
  Result _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& opts) override;
  Result allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) override;
  Result allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) override;
  Result gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& opts) override;
  Result scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& opts) override;
  Result reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& opts) override;
  Result _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& opts) override;
  Result reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& opts) override;
  Result alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                       std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& opts) override;
  Result alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override;
  Result barrier(const c10d::BarrierOptions& opts) override;
  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) override;

  Result send(Tensors& tensors, int to, int tag) override;
  Result recv(Tensors& tensors, int from, int tag) override;
  Result recvAnysource(Tensors& tensors, int tag) override;

  // Memory that members of this host read where it lies, in place of a copy (net/arena.h): for DistributedDataParallel's buckets, which asks for
  // it with DDP_DISABLE_COMM_MEM=0. size: elements. Where there is no such memory, any.
  bool supportsTensorAlloc(c10::DeviceIndex) override { return true; }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;
  // Of what this member sent so far: bytes in all, and those that were not copied.
  std::pair<std::uint64_t, std::uint64_t> sent() const { return group_->sent(); }

  // Of collectives, the same on all members; counted from the group's beginning.
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return called_; }

 private:
  struct Call;  // collectives that make up one Work (backend_call.h)
  c10::intrusive_ptr<Work> begin(Call& call, c10d::OpType type, const char* title, std::chrono::milliseconds timeout,
                                 std::string name, std::uint64_t sequence);
  // fn starts what the work consists of, now; parts do when what it reads has arrived from devices and the operations before it have begun.
  Result start(const c10::intrusive_ptr<Work>& work, const std::function<void()>& fn);
  bool leaves_now(const Call& call) const;  // nothing stands before it
  Result start_late(const c10::intrusive_ptr<Work>& work, std::shared_ptr<Departures::Copies> arriving, std::vector<std::function<void()>> parts);
  Result launch(Call call, c10d::OpType type, const char* title, std::chrono::milliseconds timeout);
  Result exchange(Call call, const std::vector<std::span<std::byte>>& outgoing,
                  const std::vector<std::span<std::byte>>& incoming, c10d::OpType type, std::chrono::milliseconds timeout);
  Result receive(Tensors& tensors, std::optional<net::Rank> from, int tag);
  void record(Work::Plan& plan, std::uint64_t sequence);
  Staging* staging_of(const at::Tensor& tensor) const { return Staging::shared(tensor.device(), pretended_); }  // nullptr: it is the host's
  void coalesce(const Result& work);  // where this thread coalesces
  void forget_coalescing();
  c10::intrusive_ptr<c10d::Backend> of_ranks(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                             const c10::intrusive_ptr<Options>& opts) const;
  std::uint32_t root(std::int64_t rank) const;
  std::size_t members() const { return static_cast<std::size_t>(size_); }
  std::chrono::milliseconds patience(std::chrono::milliseconds asked) const;

  const c10::intrusive_ptr<c10d::Store> store_;
  Identity identity_;  // constant; its ranks are complete
  std::atomic<std::chrono::milliseconds> timeout_;
  std::atomic<std::uint64_t> messages_{0};
  std::atomic<std::uint64_t> called_{0};  // collectives, whether or not they have begun
  std::shared_ptr<Group> group_;
  std::shared_ptr<const void> network_;  // of GroupNetworks, while the group is here
  const std::shared_ptr<Departures> departures_ = std::make_shared<Departures>();
  const std::optional<c10::DeviceIndex> pretended_;
  std::once_flag described_;     // to the flight recorder
  std::mutex coalescing_mutex_;  // guards coalescing_
  std::map<std::thread::id, std::vector<Result>> coalescing_;  // by the thread that began
};

}  // namespace shoal::nn
