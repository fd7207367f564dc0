// Where autograd's operators write the gradients that leave as they are: in memory that members of this host read in place. After the graph analyzer of
// Xue et al. ("Fast Distributed Deep Learning over RDMA", EuroSys 2019, 3.4), for graphs that are built anew in each pass. Passes are traced: each
// allocation with the node of autograd's graph that makes it. When a gradient is accumulated its memory says which allocation that was, its *site*:
// the node, named by the parameter of as many bytes that is nearest behind it and how far, and the how manieth of that size in the node. A gradient that
// two passes running found at one site is *fixed*: from then on this allocation is given the tensor's place. All others lie where PyTorch puts them, and
// are copied on their way.
//
// A wrong guess costs a copy and no bit: a place is memory like any other, given only while nobody holds it. A gradient that then comes from elsewhere is
// placed no more.
//
// Threads: one at a time, as data_parallel.h; what was allocated may be freed by any.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "shoal/exchange/buffer.h"

namespace shoal::nn {

class GradientPlaces {
 public:
  // Leaves that require a gradient, and the bytes of each one's; 0: it is never placed. From the first object on PyTorch's allocator of the CPU is ours, which
  // hands on to the one before it whatever has no place.
  GradientPlaces(const std::vector<at::Tensor>& parameters, std::vector<std::uint64_t> bytes);
  ~GradientPlaces();
  GradientPlaces(const GradientPlaces&) = delete;

  // Which tensors have places from now on, if they are fixed, and whose memory those are.
  void give(std::map<std::size_t, exchange::Buffer> places) { places_ = std::move(places); }

  void pass_begins();  // before or in the iteration's backward pass, on the thread that runs it
  void pass_ends();
  void accumulated(std::size_t i, const at::Tensor& gradient);  // in the pass

  // elsewhere: no allocation of its size, but part of one, or older than the pass
  enum class Site : std::uint8_t { unknown, fixed, moves, elsewhere };
  Site site(std::size_t i) const { return traces_[i].site; }

  struct Bytes {
    std::uint64_t placed = 0, copied = 0;
  };
  // Gradients of the latest pass: in their places, and elsewhere though they might have one.
  Bytes latest() const { return latest_; }

 private:
  using Key = std::tuple<std::size_t, int, std::uint32_t>;  // the parameter, edges to it, how manieth allocation of its bytes
  struct Trace {
    Site site = Site::unknown;
    std::optional<Key> seen;
    int sightings = 0;
  };
  struct Link;
  class Allocator;

  c10::DataPtr allocate(std::size_t bytes, c10::Allocator& below);
  std::optional<Key> current(std::size_t bytes);
  std::optional<std::pair<std::size_t, int>> nearest(const torch::autograd::Node& node, std::size_t bytes) const;
  void trace(std::size_t i, const void* memory);
  void settle(std::size_t i, Site site);

  const std::vector<std::uint64_t> bytes_;
  std::unordered_set<std::uint64_t> sizes_;
  // Shared in one way or another, by version.
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));
  std::vector<Accumulator> accumulators_;
  std::unordered_map<const torch::autograd::Node*, std::size_t> accumulates_;
  std::vector<Trace> traces_;
  std::map<std::size_t, exchange::Buffer> places_;
  std::map<Key, std::size_t> fixed_;
  std::shared_ptr<Link> link_;

  // This pass's.
  Bytes latest_;
  const torch::autograd::Node* node_ = nullptr;  // that runs
  std::unordered_map<std::uint64_t, std::uint32_t> made_;  // by it, of each size
  std::unordered_map<const void*, Key> where_;  // latest allocations
};

}  // namespace shoal::nn
