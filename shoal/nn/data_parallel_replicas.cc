// DataParallel's proof that members still are replicas of one another. A reduced gradient has one owner, whose bits all take over; factors
// are multiplied by every member itself, and processors or libraries that round otherwise would let replicas part unnoticed.
#include <optional>

#include "shoal/nn/data_parallel.h"
#include "shoal/nn/tensors.h"

namespace shoal::nn {
namespace {

constexpr std::uint64_t kStepsBetweenDigests = 50;

}  // namespace

bool DataParallel::digest_is_due() const { return exchange_->iteration() % kStepsBetweenDigests == 0; }

// Of the parameters that go by factors.
std::uint64_t DataParallel::digest() const {
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (exchange_->by_factors(static_cast<std::uint32_t>(i))) tensors.push_back(parameters_[i].tensor);
  }
  return digest_of(tensors);
}

// All members see the same digests and weights. Who is out of data (join) takes no steps: it lags, and is brought up to date at the end.
void DataParallel::compare_replicas() {
  const auto digests = exchange_->digests();
  const auto weights = exchange_->weights();
  std::optional<std::uint64_t> first;
  for (std::size_t rank = 0; rank < digests.size(); ++rank) {
    if (weights[rank] == 0) continue;
    if (first && digests[rank] != *first) replicas_differ_ = true;
    first = first.value_or(digests[rank]);
  }
}

// All members come here after the same iteration: they have seen the same digests.
void DataParallel::mend_replicas() {
  const net::Rank source = buffers_.first_active();
  std::vector<at::Tensor> values;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!divided_.contains(i)) values.push_back(parameters_[i].tensor);  // of a divided one every strip has one owner in a group
  }
  broadcast_tensors(session_, values, source, "values of replicas that had parted");
  if (options_.take_over_state) options_.take_over_state(source);
  take_plan(exchange::without_factors(exchange_->plan()));
  drift_.reset();
  replicas_differ_ = false;
  note("members multiply to other bits: what went by factors goes as whole gradients from step " +
       std::to_string(exchange_->iteration()) + " on, from the values of rank " + std::to_string(source));
}

}  // namespace shoal::nn
