// By its sufficient factors (factor/factor.h) a layer's weight travels in fewer numbers than it has: the pairs of all members lie in rank
// order on each of them, for whoever installs the mean to multiply. What no pair explains follows by an all-reduce, if anybody has such a rest.
#include <algorithm>
#include <utility>

#include "shoal/exchange/row_gather.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

RowTransfers transfers(const TensorSpec& tensor, std::uint32_t ranks, const collective::LinkModel& link) {
  return {ranks, tensor.rows, tensor.layer().row_bytes(), link};
}

class FactorFlow final : public Flow {
 public:
  FactorFlow(const Road& road, const TensorSpec& tensor)
      : Flow(road.runner),
        shape_(tensor.layer()),
        rest_program_(road.programs.cheapest(Collective::all_reduce, shape_.dense_bytes(), road.plan.link)),
        pairs_(courier(), road.programs, transfers(tensor, road.plan.ranks, road.plan.link),
               {{shape_.type, shape_.inputs}, {shape_.type, shape_.outputs}}) {}

  std::uint64_t operations() const override { return pairs_.operations() + 1; }

  // A plain gradient is a pair that is all rest.
  void take(std::size_t, const Contribution& own) override {
    own_ = {};
    if (const auto* pair = std::get_if<factor::Pair>(&own)) own_ = *pair;
    if (const auto* dense = std::get_if<const std::byte*>(&own)) own_.rest = *dense;
  }

  void start(const Departure& departure, net::Done done) override {
    run_ = departure.run;
    done_ = std::move(done);
    failure_ = nullptr;
    gathered_ = {};
    gathered_.weight = departure.weights;
    gathered_.divisor = run_.scaling.divisor;
    waiting_ = 1;
    pairs_.start({own_.rows, own_.rest != nullptr, {own_.x, own_.g}}, run_,
                 [this] {
                   if (pairs_.anybody_marked()) add_rest();
                   return true;
                 },
                 [this](const net::Failure& why) { arrived(why); });
  }

  Mean mean(std::size_t) override { return &gathered_; }
  std::shared_ptr<const void> memory() const override { return nullptr; }  // what is multiplied from it has memory of its own

 private:
  void add_rest() {
    try {
      std::byte* const mean = rest_.get(shape_.dense_bytes());
      const std::byte* own = own_.rest;
      if (!own) {
        std::byte* const zeros = zeros_.get(shape_.dense_bytes());
        std::fill_n(zeros, shape_.dense_bytes(), std::byte{0});
        own = zeros;
      }
      gathered_.rest = mean;
      collective::Run run = run_;
      run.operation += pairs_.operations();
      ++waiting_;
      courier().start(rest_program_, collective::Layout::even(rest_program_.program(), courier().runner().rank(), shape_.inputs * shape_.outputs),
                      {own, mean}, run, [this](const net::Failure& why) { arrived(why); });
    } catch (const Error& error) {  // no memory
      failure_ = std::make_shared<Error>(error);
      courier().runner().transport().fail(error);
    }
  }

  void arrived(const net::Failure& why) {
    if (why && !failure_) failure_ = why;
    if (--waiting_ > 0) return;
    gathered_.rows = pairs_.rows();
    gathered_.total = pairs_.total();
    if (gathered_.total > 0) {
      gathered_.x = pairs_.column(0);
      gathered_.g = pairs_.column(1);
    }
    std::exchange(done_, nullptr)(failure_);
  }

  const factor::Shape shape_;
  const collective::Verified& rest_program_;
  RowGather pairs_;

  factor::Pair own_;
  collective::Run run_;
  net::Done done_;
  int waiting_ = 0;
  net::Failure failure_;
  Arena rest_, zeros_;
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
