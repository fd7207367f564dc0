// By its sufficient factors (factor/factor.h) a layer's weight travels in fewer numbers than it has: the pairs of all members lie in rank
// order on each of them, for whoever installs the mean to multiply. What no pair explains follows by an all-reduce, if anybody has such a rest.
#include <utility>

#include "shoal/exchange/gathered_flow.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

RowTransfers transfers(const TensorSpec& tensor, std::uint32_t ranks, const collective::LinkModel& link) {
  return {ranks, tensor.rows, tensor.layer().row_bytes(), link};
}

class FactorFlow final : public GatheredFlow {
 public:
  FactorFlow(const Road& road, const TensorSpec& tensor)
      : GatheredFlow(road, tensor, transfers(tensor, road.plan.ranks, road.plan.link),
                     {{tensor.type, tensor.layer().inputs}, {tensor.type, tensor.layer().outputs}},
                     road.programs.cheapest(Collective::all_reduce, tensor.layer().dense_bytes(), road.plan.link)),
        shape_(tensor.layer()) {}

  // A plain gradient is a pair that is all rest.
  void take(std::size_t, const Contribution& own) override {
    own_ = {};
    if (const auto* pair = std::get_if<factor::Pair>(&own)) own_ = *pair;
    if (const auto* dense = std::get_if<const std::byte*>(&own)) own_.rest = *dense;
  }

  void start(const Departure& departure, net::Done done) override {
    gathered_ = {};
    gathered_.weight = departure.weights;
    gathered_.divisor = departure.run.scaling.divisor;
    gather(departure, {own_.rows, own_.rest != nullptr, {own_.x, own_.g}}, std::move(done));
  }

  Mean mean(std::size_t) override { return &gathered_; }
  std::shared_ptr<const void> memory() const override { return nullptr; }  // what is multiplied from it has memory of its own

 private:
  bool counted() override {
    if (!rows().anybody_marked()) return true;
    std::byte* const mean = rest_.get(shape_.dense_bytes());
    add_whole(own_.rest, mean);
    gathered_.rest = mean;
    return true;
  }

  net::Failure arrived() override {
    gathered_.rows = rows().rows();
    gathered_.total = rows().total();
    if (gathered_.total > 0) {
      gathered_.x = rows().column(0);
      gathered_.g = rows().column(1);
    }
    return nullptr;
  }

  const factor::Shape shape_;
  factor::Pair own_;
  Arena rest_;
  factor::Gathered gathered_;
};

class FactorsWay final : public Way {
 public:
  using Way::Way;
  bool carries(const TensorSpec& tensor) const override { return tensor.rows > 0; }
  Cost cost(const Load& load) const override {
    const auto by = transfers(load.first, load.ranks, load.link);
    const double operations = factor::extra_operations(load.first.layer(), load.first.rows, load.ranks);
    return {by.sent(load.ranks), by.seconds(load.ranks, load.link), load.multiply_rate > 0 ? operations / load.multiply_rate : 0};
  }
  std::unique_ptr<Flow> flow(const Road& road) const override {
    return std::make_unique<FactorFlow>(road, road.plan.tensors[road.unit.tensors.front()]);
  }
};

}  // namespace

std::shared_ptr<const Way> make_factors_way(const WayName& name) { return std::make_shared<FactorsWay>(name.text()); }

}  // namespace shoal::exchange
