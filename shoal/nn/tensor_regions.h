// Tensors that the other members put into and get from: net::Regions for a user's threads. Calls block until their
// own memory is free or full, and signalled() is waited for.
//
// Lifetime: the session outlives it. Threads: any, one at a time; never the transport's loop. The registered tensors stay alive
// as long as this; a tensor of a call that has run out of patience until the transport lets go of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shoal/net/regions.h"
#include "shoal/nn/session.h"

namespace shoal::nn {

class TensorRegions {
 public:
  // All members make theirs together, between the same other calls on the session.
  explicit TensorRegions(Session& session);
  ~TensorRegions();  // what was signalled has a moment to leave: to a member that is gone it never will
  TensorRegions(const TensorRegions&) = delete;

  // Regions are numbered from 0 in the order in which a member adds them. Tensors here and below are contiguous, on the CPU.
  // Throws Error{invalid_argument} for others.
  std::uint32_t add(const at::Tensor& tensor);
  at::Tensor allocate(at::IntArrayRef shape, at::ScalarType type);  // a new tensor of zeros, added
  // `offset` counts elements of the tensor's type. Throws what ended the transport, or Error{timeout} after the session's patience.
  void put(net::Rank to, std::uint32_t region, std::uint64_t offset, const at::Tensor& tensor);
  void get(net::Rank from, std::uint32_t region, std::uint64_t offset, const at::Tensor& into);
  void signal(net::Rank to, std::uint64_t sequence);  // does not wait
  void settle();                                      // until all that was signalled has left
  // Until `from` has signalled `sequence` or a later one; then all that it had put before is in place.
  void wait(net::Rank from, std::uint64_t sequence);

 private:
  void check_peer(net::Rank peer, const char* what) const;
  bool settled() const { return unsent_->load() == 0; }
  template <class Begin>
  void run(net::Rank peer, const char* what, Begin begin);  // begin(regions, done) on the loop, until done

  Session& session_;
  std::shared_ptr<net::Regions> regions_;  // made and given up on the loop; nullptr alone
  std::vector<at::Tensor> tensors_;
  std::shared_ptr<std::atomic<std::size_t>> unsent_ = std::make_shared<std::atomic<std::size_t>>(0);  // signals
};

}  // namespace shoal::nn
