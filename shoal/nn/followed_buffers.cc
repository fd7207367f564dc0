#include "shoal/nn/followed_buffers.h"

#include <algorithm>
#include <utility>

#include "shoal/nn/tensors.h"

namespace shoal::nn {

FollowedBuffers::FollowedBuffers(Session& session, std::vector<at::Tensor> buffers) : session_(session), buffers_(std::move(buffers)) {
  if (!session_.rejoins()) return;
  for (const at::Tensor& buffer : buffers_) common_.push_back(buffer.detach().clone());
}

bool FollowedBuffers::start(const std::vector<double>& weights) {
  const auto has_data = [](double w) { return w > 0; };
  const auto first = std::find_if(weights.begin(), weights.end(), has_data);
  if (first == weights.end()) return false;
  first_active_ = static_cast<net::Rank>(first - weights.begin());
  somebody_idled_ = somebody_idled_ || !std::all_of(first, weights.end() - session_.servers(), has_data) || first_active_ != 0;
  if (buffers_.empty()) return true;
  under_way_.cancel();  // of an attempt in which a member was lost
  packed_.resize(packed_bytes(buffers_));
  if (first_active_ == session_.place()) pack(buffers_, packed_);
  under_way_ = session_.start_broadcast(packed_, first_active_, "broadcast of buffers");
  return true;
}

void FollowedBuffers::finish() {
  if (packed_.empty()) return;
  under_way_.wait();
  if (first_active_ != session_.place()) unpack(packed_, buffers_);
  packed_.clear();
  for (std::size_t i = 0; i < common_.size(); ++i) common_[i].copy_(buffers_[i].detach());
}

std::optional<net::Rank> FollowedBuffers::take_over_from() {
  return std::exchange(somebody_idled_, false) ? std::optional(first_active_) : std::nullopt;
}

}  // namespace shoal::nn
