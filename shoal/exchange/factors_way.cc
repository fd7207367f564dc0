// By its sufficient factors (factor/factor.h) a layer's weight travels in fewer numbers than it has: the pairs of all members, each in its wire
// form (factor/wire.h), come to every member, which unpacks them in rank order for whoever installs the mean to multiply. What no pair explains
// follows by an all-reduce, if anybody has such a rest.
#include <span>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/exchange/gathered_flow.h"
#include "shoal/exchange/ways.h"
#include "shoal/factor/wire.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

// A pair is gathered as so many lines.
const RowGather::Column kLines{DType::i64, factor::kLine / sizeof(std::int64_t)};

RowTransfers factor_transfers(const TensorSpec& tensor, std::uint32_t ranks, const collective::LinkModel& link) {
  return {ranks, factor::wire_bytes(tensor.layer(), tensor.rows, tensor.filled) / factor::kLine, factor::kLine, link};
}

class FactorFlow final : public GatheredFlow {
 public:
  FactorFlow(const Road& road, const TensorSpec& tensor)
      : GatheredFlow(road, tensor, factor_transfers(tensor, road.plan.ranks, road.plan.link), {kLines},
                     road.programs.cheapest(Collective::all_reduce, tensor.layer().dense_bytes(), road.plan.link)),
        shape_(tensor.layer()),
        own_(road.runner.transport()) {}

  // A plain gradient is a pair that is all rest.
  void take(std::size_t, const Contribution& own) override {
    factor::Pair pair;
    if (const auto* given = std::get_if<factor::Pair>(&own)) pair = *given;
    if (const auto* dense = std::get_if<const std::byte*>(&own)) pair.rest = *dense;
    rest_ = pair.rest;
    std::byte* const to = pair.rows > 0 ? own_.get(factor::wire_bytes(shape_, pair.rows)) : nullptr;
    own_lines_ = to ? factor::write(pair, shape_, to) / factor::kLine : 0;
    own_wire_ = to;
    unpacked_ = false;
  }

  void start(const Departure& departure, net::Done done) override {
    gathered_ = {};
    gathered_.weight = departure.weights;
    gathered_.divisor = departure.run.scaling.divisor;
    gather(departure, {own_lines_, rest_ != nullptr, {own_wire_}}, std::move(done));
  }

  Mean mean(std::size_t) override {
    if (!std::exchange(unpacked_, true)) unpack();
    return &gathered_;
  }
  std::shared_ptr<const void> memory() const override { return nullptr; }  // what is multiplied from it has memory of its own

 private:
  bool counted() override {
    if (!rows().anybody_marked()) return true;
    std::byte* const mean = rests_.get(shape_.dense_bytes());
    add_whole(rest_, mean);
    gathered_.rest = mean;
    return true;
  }

  net::Failure arrived() override {
    written_.clear();
    const std::byte* at = rows().total() > 0 ? rows().column(0) : nullptr;
    for (const auto lines : rows().rows()) {
      const std::span wire(at, lines * factor::kLine);
      try {
        written_.push_back(lines > 0 ? factor::read(wire, shape_) : factor::Written());
      } catch (const Error& error) {
        return std::make_shared<Error>(error);
      }
      gathered_.rows.push_back(written_.back().rows);
      gathered_.total += written_.back().rows;
      at += wire.size();
    }
    return nullptr;
  }

  void unpack() {
    if (gathered_.total == 0) return;
    const auto all = [&](Buffer& buffer, std::uint64_t columns, std::span<const std::byte> factor::Written::*matrix) {
      std::byte* const first = buffer.get(gathered_.total * columns * size_of(shape_.row_type()));
      std::byte* to = first;
      for (const auto& written : written_) {
        const auto count = written.rows * columns;
        factor::unpack(written.*matrix, shape_.row_type(), count, to);
        to += count * size_of(shape_.row_type());
      }
      return first;
    };
    gathered_.x = all(x_, shape_.inputs, &factor::Written::x);
    gathered_.g = all(g_, shape_.outputs, &factor::Written::g);
  }

  const factor::Shape shape_;
  const std::byte* rest_ = nullptr;  // this member's
  Buffer own_;                       // its pair on the wire
  const std::byte* own_wire_ = nullptr;
  std::uint64_t own_lines_ = 0;
  Buffer rests_;                     // the mean of all rests
  std::vector<factor::Written> written_;  // by rank
  bool unpacked_ = false;
  Buffer x_, g_;
  factor::Gathered gathered_;
};

class FactorsWay final : public Way {
 public:
  using Way::Way;
  bool is_sized() const override { return false; }
  bool carries(const TensorSpec& tensor) const override { return tensor.rows > 0; }
  std::vector<Leg> legs(const Load& load) const override {
    const auto by = factor_transfers(load.first, load.ranks, load.link);
    return {by.heads, by.rows};
  }
  double computing(const Load& load) const override {
    const double operations = factor::extra_operations(load.first.layer(), load.first.rows, load.ranks);
    return load.multiply_rate > 0 ? operations / load.multiply_rate : 0;
  }
  std::unique_ptr<Flow> flow(const Road& road) const override {
    return std::make_unique<FactorFlow>(road, road.plan.tensors[road.unit.tensors.front()]);
  }
};

}  // namespace

std::shared_ptr<const Way> make_factors_way(const WayName& name) { return std::make_shared<FactorsWay>(name.text()); }

}  // namespace shoal::exchange
