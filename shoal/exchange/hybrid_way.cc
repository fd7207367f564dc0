// "hybrid:GROUPS": members of a group share the layer (strips.h), so that what travels for it inside a group are rows of activations and of
// their gradients, while it computes. Here goes what its groups have to tell each other: the gradient of a strip, a sum over the rows of a whole
// group, is added among the members that hold the strip. What no rows explain, such as another use of the weight, is an ordinary gradient of all of
// it: added among all members, if anybody has any.
#include <algorithm>
#include <functional>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/exchange/buffer.h"
#include "shoal/exchange/flow.h"
#include "shoal/exchange/programs.h"
#include "shoal/exchange/strips.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;
using collective::Layout;

class HybridFlow final : public Flow {
 public:
  HybridFlow(const Road& road, const TensorSpec& tensor, const Strips& strips)
      : Flow(road.runner),
        layer_(tensor.layer()),
        strips_(strips),
        place_(strips.place(road.runner.rank())),
        holders_(std::make_shared<collective::Runner>(road.runner.transport(), transport_ranks(road.runner, strips.holders(place_)))),
        programs_(strips.groups),
        marking_(road.programs.marking()),
        adding_strips_(programs_.cheapest(Collective::all_reduce, strip_count() * size_of(layer_.type), road.plan.link)),
        adding_whole_(road.programs.cheapest(Collective::all_reduce, layer_.dense_bytes(), road.plan.link)),
        results_(road.runner.transport()) {}

  ~HybridFlow() override { collective::let_go(holders_); }

  std::uint64_t operations() const override { return 3; }

  void take(std::size_t, const Contribution& own) override {
    own_ = {};
    if (const auto* strip = std::get_if<Strip>(&own)) own_ = *strip;
    if (const auto* whole = std::get_if<const std::byte*>(&own)) own_.rest = *whole;
    has_rest_ = own_.rest ? 1 : 0;
    results_.begin();
    mean_ = results_.get(strip_count() * size_of(layer_.type));
    rest_is_added_ = false;
  }

  void start(const Departure& departure, net::Done done) override {
    run_ = departure.run;
    done_ = std::move(done);
    failure_ = nullptr;
    waiting_ = 2;
    collective::Run mark = run_;
    mark.type = DType::u8;
    mark.op = ReduceOp::max;
    mark.scaling = {};
    mark.slice_bytes = net::kUrgentLimit;
    mark.priority.cls = net::Class::urgent;
    courier().start(marking_, Layout::even(marking_.program(), courier().runner().rank(), 1),
                    {reinterpret_cast<const std::byte*>(&has_rest_), reinterpret_cast<std::byte*>(&any_rest_)}, mark,
                    [this](const net::Failure& why) {
                      if (!why && any_rest_ != 0) add_rest();
                      part_arrived(why);
                    });
    collective::Run strip = run_;
    strip.operation += 1;
    strip.scaling.prescale = 1;  // every row has its member's weight already
    courier().start_among(*holders_, adding_strips_, Layout::even(adding_strips_.program(), holders_->rank(), strip_count()),
                          {own_.values ? own_.values : zeros(), mean_}, strip,
                          [this](const net::Failure& why) { part_arrived(why); });
  }

  void cancel(const net::Failure& why) override { holders_->cancel(run_.operation + 1, why); }

  // Of the own strip.
  Mean mean(std::size_t) override {
    if (any_rest_ != 0 && !std::exchange(rest_is_added_, true)) {
      const auto* rest = reinterpret_cast<const float*>(rest_.get(layer_.dense_bytes())) + strips_.first(place_) * layer_.inputs;
      auto* mean = reinterpret_cast<float*>(mean_);
      std::transform(mean, mean + strip_count(), rest, mean, std::plus<>());
    }
    return static_cast<const std::byte*>(mean_);
  }
  std::shared_ptr<const void> memory() const override { return results_.share(); }

 private:
  static std::vector<net::Rank> transport_ranks(const collective::Runner& all, const std::vector<std::uint32_t>& ranks) {
    std::vector<net::Rank> members;
    for (const auto rank : ranks) members.push_back(all.members()[rank]);
    return members;
  }

  std::uint64_t strip_count() const { return strips_.rows(place_) * layer_.inputs; }

  const std::byte* zeros() { return zeros_.get(layer_.dense_bytes()); }  // for either use

  void add_rest() {
    collective::Run whole = run_;
    whole.operation += 2;
    ++waiting_;
    const auto count = layer_.inputs * layer_.outputs;
    courier().start(adding_whole_, Layout::even(adding_whole_.program(), courier().runner().rank(), count),
                    {own_.rest ? own_.rest : zeros(), rest_.get(layer_.dense_bytes())}, whole,
                    [this](const net::Failure& why) { part_arrived(why); });
  }

  void part_arrived(const net::Failure& why) {
    if (why && !failure_) failure_ = why;
    if (--waiting_ == 0) std::exchange(done_, nullptr)(failure_);
  }

  const factor::Shape layer_;
  const Strips strips_;
  const std::uint32_t place_;
  std::shared_ptr<collective::Runner> holders_;  // of this strip, in all groups
  Programs programs_;
  const collective::Verified &marking_, &adding_strips_, &adding_whole_;

  Strip own_;
  std::uint8_t has_rest_ = 0, any_rest_ = 0;
  bool rest_is_added_ = false;
  Results results_;
  Buffer rest_;
  Zeros zeros_;
  std::byte* mean_ = nullptr;

  collective::Run run_;
  net::Done done_;
  net::Failure failure_;
  int waiting_ = 0;
};

class HybridWay final : public Way {
 public:
  HybridWay(std::string name, std::uint32_t groups) : Way(std::move(name)), groups_(groups) {}

  std::uint32_t groups() const override { return groups_; }
  bool carries(const TensorSpec& tensor) const override { return tensor.rows > 0 && tensor.divisible; }

  void check(std::uint32_t ranks) const override {
    if (groups_ < ranks && ranks % groups_ == 0) return;
    throw Error(Code::invalid_argument, name() + " does not divide " + std::to_string(ranks) + " members into equal groups of two or more", "plan",
                "the number of groups divides that of members and is smaller");
  }

  // Inside every group activations, as nn/layer_group.h gathers and returns them; then, among the holders of each strip, its gradient.
  std::vector<Leg> legs(const Load& load) const override {
    const Strips strips{load.ranks, groups_, load.first.outputs};
    const auto layer = load.first.layer();
    const std::uint64_t m = strips.members(), size = size_of(layer.type), in = load.first.rows * m * layer.inputs;  // a group's
    std::vector<Leg> all;
    const auto in_groups = [&](Leg::When when, Collective kind, std::uint64_t elements, std::uint64_t element_bytes) {
      for (std::uint32_t g = 0; g < groups_; ++g) {
        all.push_back({when, kind, "direct", elements, element_bytes, {}, strips.group_of(g * strips.members()), g > 0});
      }
    };
    // Of a member's outputs, and their gradients, those of each strip go to its holder.
    const auto to_strips = [&](Leg::When when) {
      in_groups(when, Collective::all_to_all, load.first.rows * layer.outputs, size);
      std::vector<std::uint64_t> parts;
      for (std::uint32_t place = 0; place < m; ++place) parts.push_back(load.first.rows * strips.rows(place));
      for (auto leg = all.end() - groups_; leg != all.end(); ++leg) {
        for (std::uint32_t from = 0; from < m; ++from) {
          if (when == Leg::When::backward) leg->chunks.insert(leg->chunks.end(), parts.begin(), parts.end());
          if (when == Leg::When::forward) leg->chunks.insert(leg->chunks.end(), m, parts[from]);
        }
      }
    };
    in_groups(Leg::When::forward, Collective::all_gather, m, kCounts);
    in_groups(Leg::When::forward, Collective::all_gather, in, size);
    to_strips(Leg::When::forward);
    to_strips(Leg::When::backward);
    if (!load.first.takes_data) in_groups(Leg::When::backward, Collective::reduce_scatter, in, size);
    for (std::uint32_t place = 0; groups_ > 1 && place < m; ++place) {
      Leg leg{.elements = strips.rows(place) * layer.inputs, .element_bytes = size, .members = strips.holders(place), .beside = place > 0};
      leg.program = collective::choose(leg.collective, groups_, leg.bytes(), load.link);
      all.push_back(leg);
    }
    return all;
  }

  std::uint32_t slice_bytes(const Load& load) const override {
    const double strip = load.bytes() * groups_ / load.ranks;
    return collective::slice_bytes(Collective::all_reduce, "ring", groups_, strip, load.link);
  }

  std::unique_ptr<Flow> flow(const Road& road) const override {
    const auto& tensor = road.plan.tensors[road.unit.tensors.front()];
    return std::make_unique<HybridFlow>(road, tensor, Strips{road.plan.ranks, groups_, tensor.outputs});
  }

 private:
  static constexpr std::uint64_t kCounts = 16;  // bytes in which a member says how many rows it has

  const std::uint32_t groups_;
};

}  // namespace

std::shared_ptr<const Way> make_hybrid_way(const WayName& name) {
  const double groups = name.number(0, "the number of groups", 1, 4096, 1);
  if (groups != static_cast<double>(static_cast<std::uint32_t>(groups))) name.refuse("the number of groups is not whole");
  return std::make_shared<HybridWay>(name.text(), static_cast<std::uint32_t>(groups));
}

}  // namespace shoal::exchange
