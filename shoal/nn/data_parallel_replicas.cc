// DataParallel's proof that members still are replicas of one another. A reduced gradient has one owner, whose bits all take over; factors
// are multiplied by every member itself, and processors or libraries that round otherwise would let replicas part unnoticed.
#include <algorithm>

#include "shoal/nn/data_parallel.h"
#include "shoal/nn/tensors.h"

namespace shoal::nn {
namespace {

constexpr std::uint64_t kStepsBetweenDigests = 50;

// FNV-1a by words of eight bytes.
std::uint64_t digest_of(std::uint64_t h, std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), sizeof word))) {
    word = 0;
    std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof word), reinterpret_cast<std::byte*>(&word));
    h = (h ^ word) * 0x100000001b3u;
  }
  return h;
}

}  // namespace

// Announced with the next iteration: 0 is "nothing to say".
std::uint64_t DataParallel::digest_if_due() const {
  if (exchange_.iteration() % kStepsBetweenDigests != 0) return 0;
  std::uint64_t digest = 0;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!exchange_.by_factors(static_cast<std::uint32_t>(i))) continue;
    bytes.resize(packed_bytes({parameters_[i].tensor}));
    pack({parameters_[i].tensor}, bytes);
    digest = digest_of(digest + 1, bytes);
  }
  return digest;
}

// All members come here after the same iteration: they have seen the same digests.
void DataParallel::mend_replicas() {
  const net::Rank source = buffers_.first_active();
  std::vector<at::Tensor> values;
  for (const auto& [name, tensor] : parameters_) values.push_back(tensor);
  broadcast_tensors(session_, values, source, "values of replicas that had parted");
  if (options_.take_over_state) options_.take_over_state(source);
  exchange_.replan(exchange::without_factors(exchange_.plan()));
  drift_.reset();
  replicas_differ_ = false;
  const auto now = steady_now();
  Events::local().record({EventKind::note, now, now, static_cast<std::int64_t>(exchange_.iteration()), -1, 0,
                          Events::local().intern("members multiply to other bits: what went by factors goes as whole gradients from step " +
                                                 std::to_string(exchange_.iteration()) + " on, from the values of rank " + std::to_string(source))});
}

}  // namespace shoal::nn
