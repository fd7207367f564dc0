// "hybrid:GROUPS": members of a group share the layer (strips.h), so that what travels for it inside a group are rows of activations and of
// their gradients, while it computes. Here goes what its groups have to tell each other: the gradient of a strip, a sum over the rows of a whole
// group, is added among the members that hold the strip. What no rows explain, such as another use of the weight, is an ordinary gradient of all of
// it: added among all members, if anybody has any.
#include <algorithm>
#include <functional>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/exchange/arena.h"
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
        marking_(road.programs.named(Collective::all_reduce, strips.ranks <= 8 ? "gather" : "recursive_doubling")),
        adding_strips_(programs_.cheapest(Collective::all_reduce, strip_count() * size_of(layer_.type), road.plan.link)),
        adding_whole_(road.programs.cheapest(Collective::all_reduce, layer_.dense_bytes(), road.plan.link)),
        memory_(road.runner.transport()) {}

  ~HybridFlow() override { collective::let_go(holders_); }

  std::uint64_t operations() const override { return 3; }

  void take(std::size_t, const Contribution& own) override {
    own_ = {};
    if (const auto* strip = std::get_if<Strip>(&own)) own_ = *strip;
    if (const auto* whole = std::get_if<const std::byte*>(&own)) own_.rest = *whole;
    has_rest_ = own_.rest ? 1 : 0;
    mean_ = memory_.get(strip_count() * size_of(layer_.type));
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
                          {own_.values ? own_.values : zeros(strip_count()), mean_}, strip,
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
  std::shared_ptr<const void> memory() const override { return memory_.share(); }

 private:
  static std::vector<net::Rank> transport_ranks(const collective::Runner& all, const std::vector<std::uint32_t>& ranks) {
    std::vector<net::Rank> members;
    for (const auto rank : ranks) members.push_back(all.members()[rank]);
    return members;
  }

  std::uint64_t strip_count() const { return strips_.rows(place_) * layer_.inputs; }

  const std::byte* zeros(std::uint64_t count) {
    std::byte* const memory = zeros_.get(layer_.dense_bytes());  // for either use: they may run side by side
    std::fill_n(memory, count * size_of(layer_.type), std::byte{0});
    return memory;
  }

  void add_rest() {
    collective::Run whole = run_;
    whole.operation += 2;
    ++waiting_;
    const auto count = layer_.inputs * layer_.outputs;
    courier().start(adding_whole_, Layout::even(adding_whole_.program(), courier().runner().rank(), count),
                    {own_.rest ? own_.rest : zeros(count), rest_.get(layer_.dense_bytes())}, whole,
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
  Arena memory_;  // of the mean
  Arena rest_, zeros_;
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

  Cost cost(const Load& load) const override {
    const Strips strips{load.ranks, groups_, load.first.outputs};
    const auto layer = load.first.layer();
    const double size = static_cast<double>(size_of(layer.type)), m = strips.members(), rows = static_cast<double>(load.first.rows);
    const double in = rows * m * static_cast<double>(layer.inputs) * size;  // the group's
    const double out = rows * static_cast<double>(layer.outputs) * size;    // a member's own, of all strips
    const auto seconds = [&](Collective kind, double bytes) { return collective::price(kind, "direct", strips.members(), bytes, load.link); };
    const double activations = seconds(Collective::all_gather, in) + seconds(Collective::reduce_scatter, in) +
                               2 * seconds(Collective::all_to_all, out) + seconds(Collective::all_gather, kCounts * m);
    const double sent = 2 * (m - 1) * (in + out) / m;
    if (groups_ == 1) return {sent, 0, 0, activations};
    const double strip = load.bytes() / m;
    const auto program = collective::choose(Collective::all_reduce, groups_, strip, load.link);
    return {sent + collective::busiest_bytes(Collective::all_reduce, program, groups_, strip),
            collective::price(Collective::all_reduce, program, groups_, strip, load.link), 0, activations};
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
  static constexpr double kCounts = 16;  // bytes in which a member says how many rows it has

  const std::uint32_t groups_;
};

}  // namespace

std::shared_ptr<const Way> make_hybrid_way(const WayName& name) {
  const double groups = name.number(0, "the number of groups", 1, 4096, 1);
  if (groups != static_cast<double>(static_cast<std::uint32_t>(groups))) name.refuse("the number of groups is not whole");
  return std::make_shared<HybridWay>(name.text(), static_cast<std::uint32_t>(groups));
}

}  // namespace shoal::exchange
