// The members that share divided layers (exchange/strips.h), and what of such a layer travels between them while it computes. Everybody has rows
// of its own, of samples or tokens; for its strip a member needs the rows of all.
//
//   forward   X = gather(x): everybody's rows of the layer's input      Das et al.'s part-broadcast
//             y = to_owners(X Wsᵀ): own rows, all outputs
//   backward  Gs = to_strips(g): everybody's rows of the output's gradient, the own strip's outputs
//             dx = reduce(Gs Ws): own rows, added over strips in their order    part-reduce
//
// Each is one verified program among the group, called by all its members in the same order: what one computes waits for the others.
//
// Members need not take the same way through the model. A *call* is a member's use of a divided layer; a *round* its calls up to the next backward
// pass. count() finds out whether everybody makes the same call: where not, it is nobody's as a group, and each computes with the whole weight.
//
// Threads: the caller's, as data_parallel.h; calls block. Lifetime: the session outlives it. Tensors are f32, on the CPU, contiguous.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shoal/collective/verify.h"
#include "shoal/exchange/strips.h"
#include "shoal/nn/session.h"

namespace shoal::nn {

using RowCounts = std::vector<std::int64_t>;  // by place in the group

class LayerGroup {
 public:
  // All members of the job make theirs together, between the same other calls on the session; `strips.outputs` says nothing here.
  LayerGroup(Session& session, const exchange::Strips& strips);
  ~LayerGroup();
  LayerGroup(const LayerGroup&) = delete;

  // How many rows everybody has. Nothing where somebody calls another layer, or no more in this round.
  std::optional<RowCounts> count(std::int64_t rows, std::int64_t layer, const std::string& name);
  // The own round ends: who still calls hears of it. Of several groups the first for all, then the second, which waits.
  void end_round();
  void next_round();
  at::Tensor gather(const at::Tensor& x, const RowCounts& rows, const std::string& name);
  at::Tensor to_owners(const at::Tensor& y, const RowCounts& rows, std::uint64_t outputs, const std::string& name);
  at::Tensor to_strips(const at::Tensor& g, const RowCounts& rows, const std::string& name);

  // A sum under way: its result is read once it has been waited for. Going without that ends it.
  class Sum {
   public:
    Sum(collective::Started started, at::Tensor all, at::Tensor own, Session& session);
    ~Sum();
    Sum(const Sum&) = delete;
    at::Tensor wait();

   private:
    Session& session_;
    collective::Started started_;
    bool waited_ = false;
    at::Tensor all_, own_;  // read and written until it is done
  };
  std::unique_ptr<Sum> start_reduce(const at::Tensor& dx, const RowCounts& rows, const std::string& name);

 private:
  struct Count {  // under way: what is told, and what everybody told, by place
    at::Tensor own, all;
    collective::Started started;
  };
  Count tell(std::int64_t layer, std::int64_t rows, const std::string& label);
  collective::Started start(const collective::Verified& program, const collective::Layout& layout, const at::Tensor& input, const at::Tensor& output,
                            const std::string& label, net::Priority priority = {});
  void run(const collective::Verified& program, const collective::Layout& layout, const at::Tensor& input, const at::Tensor& output,
           const std::string& label);
  std::int64_t own(const RowCounts& rows) const { return rows[place_]; }

  Session& session_;
  const exchange::Strips strips_;
  const std::uint32_t place_;
  const std::uint16_t channel_;
  std::shared_ptr<collective::Runner> runner_;  // given up on the loop
  const collective::Verified gathering_, scattering_, exchanging_;
  std::uint64_t operations_ = 0;                // so far, the same on all members of the group
  bool over_ = false;                           // somebody's round is
  std::optional<Count> ending_;
};

}  // namespace shoal::nn
