// "owners": a parameter server whose shards lie on all members, with the optimizer on the server. Every member owns a part of the tensor (owned_parts.h). An
// iteration has two halves, each a verified program, and the optimizer's step between them:
//   reduce at the owner    reduce-scatter of gradients, a left fold in rank order whatever the link; mean() is that of the own part
//   update                 the caller steps its part
//   send back              all-gather of the parts of the parameter (give_back())
// So many bytes as a direct all-reduce sends, and its bits; a member computes 1/N of the step.
#include <algorithm>
#include <utility>

#include "shoal/exchange/buffer.h"
#include "shoal/exchange/flow.h"
#include "shoal/exchange/owned_parts.h"
#include "shoal/exchange/programs.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

constexpr const char* kReducing = "direct";  // one order of additions, however a plan is fitted to its links

class OwnersFlow final : public OwnedFlow {
 public:
  OwnersFlow(const Road& road, const TensorSpec& tensor)
      : OwnedFlow(road.runner),
        type_(tensor.type),
        parts_{road.plan.ranks, tensor.count},
        reducing_(road.programs.named(Collective::reduce_scatter, kReducing)),
        returning_(road.programs.cheapest(Collective::all_gather, tensor.count * size_of(tensor.type), road.plan.link)),
        results_(road.runner.transport()) {}

  std::uint64_t operations() const override { return 2; }

  void take(std::size_t, const Contribution& own) override {
    const auto* const dense = std::get_if<const std::byte*>(&own);
    input_ = dense ? *dense : zeros_.get(parts_.count * size_of(type_));
    results_.begin();
    mean_ = results_.get(parts_.size(courier().runner().rank()) * size_of(type_));
  }

  void start(const Departure& departure, net::Done done) override {
    courier().start(reducing_, parts_.layout(false, true), {input_, mean_}, departure.run, std::move(done));
  }

  Mean mean(std::size_t) override { return static_cast<const std::byte*>(mean_); }
  std::shared_ptr<const void> memory() const override { return results_.share(); }

  void give_back(const std::byte* part, std::byte* whole, const collective::Run& run, net::Done done) override {
    courier().start(returning_, parts_.layout(true, false), {part, whole}, run, std::move(done));
  }

 private:
  const DType type_;
  const OwnedParts parts_;
  const collective::Verified &reducing_, &returning_;
  Results results_;
  Zeros zeros_;
  const std::byte* input_ = nullptr;
  std::byte* mean_ = nullptr;
};

class OwnersWay final : public Way {
 public:
  using Way::Way;
  bool owned() const override { return true; }
  bool carries(const TensorSpec& tensor) const override { return tensor.by_element && tensor.type == DType::f32 && tensor.count >= kLeastElements; }

  std::vector<Leg> legs(const Load& load) const override {
    Leg reducing{.collective = Collective::reduce_scatter, .program = kReducing, .elements = load.count, .element_bytes = size_of(load.first.type)};
    reducing.chunks = OwnedParts{load.ranks, load.count}.layout(false, true).count;
    Leg returning = reducing;
    returning.when = Leg::When::after;
    returning.collective = Collective::all_gather;
    returning.program = collective::choose(returning.collective, load.ranks, load.bytes(), load.link);
    return {reducing, returning};
  }

  std::uint32_t slice_bytes(const Load& load) const override {
    return collective::slice_bytes(Collective::reduce_scatter, kReducing, load.ranks, load.bytes(), load.link);
  }

  std::unique_ptr<Flow> flow(const Road& road) const override {
    return std::make_unique<OwnersFlow>(road, road.plan.tensors[road.unit.tensors.front()]);
  }
};

}  // namespace

std::shared_ptr<const Way> make_owners_way(const WayName& name) { return std::make_shared<OwnersWay>(name.text()); }

}  // namespace shoal::exchange
