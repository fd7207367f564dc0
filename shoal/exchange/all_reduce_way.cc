// The plain way: a unit's gradients are added by one verified program, straight from and into the caller's memory. The mean's bits are the
// program's: a left fold in rank order, rotated, or a tree (collective/program.h).
#include "shoal/collective/build.h"
#include "shoal/exchange/packed_flow.h"
#include "shoal/exchange/programs.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

class AllReduceFlow final : public PackedFlow {
 public:
  explicit AllReduceFlow(const Road& road)
      : PackedFlow(road),
        program_(road.programs.named(Collective::all_reduce, road.unit.way)),
        layout_(collective::Layout::even(program_.program(), road.runner.rank(), count())) {}

  void start(const Departure& departure, net::Done done) override {
    courier().start(program_, layout_, {input(), output()}, departure.run, std::move(done));
  }

 private:
  const collective::Verified& program_;
  const collective::Layout layout_;
};

class AllReduceWay final : public Way {
 public:
  using Way::Way;
  bool packs() const override { return true; }
  bool carries(const TensorSpec&) const override { return true; }
  Cost cost(const Load& load) const override {
    return {collective::busiest_bytes(Collective::all_reduce, name(), load.ranks, load.bytes()),
            collective::price(Collective::all_reduce, name(), load.ranks, load.bytes(), load.link), 0};
  }
  std::uint32_t slice_bytes(const Load& load) const override {
    return collective::slice_bytes(Collective::all_reduce, name(), load.ranks, load.bytes(), load.link);
  }
  std::unique_ptr<Flow> flow(const Road& road) const override { return std::make_unique<AllReduceFlow>(road); }
};

}  // namespace

std::shared_ptr<const Way> make_all_reduce_way(const WayName& name) { return std::make_shared<AllReduceWay>(name.text()); }

}  // namespace shoal::exchange
