// Buffers of a model (running means and the like): in every iteration all members take over those of the first that has data, which
// is DDP's rule with a member that may be out of data.
//
// Threads: the caller's, as data_parallel.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "shoal/nn/session.h"

namespace shoal::nn {

class FollowedBuffers {
 public:
  FollowedBuffers(Session& session, std::vector<at::Tensor> buffers);
  // Of a step that was left half way nobody may ever finish the buffers; packed_ is in use until they are given up.
  ~FollowedBuffers() { cancel(); }
  FollowedBuffers(const FollowedBuffers&) = delete;
  FollowedBuffers& operator=(const FollowedBuffers&) = delete;

  // weights: of all members in this iteration, by rank. False: nobody has data, and nothing is on its way.
  bool start(const std::vector<double>& weights);
  void cancel() { under_way_.cancel(); }
  void finish();  // waits; nothing to do without start()

  void become(std::vector<at::Tensor> buffers) { buffers_ = std::move(buffers); }  // others in place of those so far, each of the same shape

  // As all members had them last: forward passes since then may have changed the own ones. Only where Session::rejoins().
  const std::vector<at::Tensor>& common() const { return common_; }

  net::Rank first_active() const { return first_active_; }  // whose buffers all have since the last start()

  // Where members must take over parameters from after a join: the first one that was active in the last iteration with data.
  // nullopt: since the last call all members that train were active in all of them, so that nobody lags. The same on all members.
  std::optional<net::Rank> take_over_from();

 private:
  Session& session_;
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> common_;
  std::vector<std::byte> packed_;
  Session::Broadcast under_way_;
  net::Rank first_active_ = 0;
  bool somebody_idled_ = false;
};

}  // namespace shoal::nn
