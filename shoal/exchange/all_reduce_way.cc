// The plain way: a unit's gradients are added by one verified program, straight from and into the caller's memory. The mean's bits are the
// program's: a left fold in rank order, rotated, or a tree (collective/program.h). Of a plan with servers it is the workers', and servers idle;
// but programs that are made for a network have a place for each of its hosts, servers too.
#include <memory>
#include <numeric>
#include <utility>

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

class WorkersFlow final : public PackedFlow {
 public:
  WorkersFlow(const Road& road, std::uint32_t workers) : PackedFlow(road), programs_(workers) {
    if (road.runner.rank() >= workers) return;
    const auto& all = road.runner.members();
    workers_ = std::make_shared<collective::Runner>(road.runner.transport(), std::vector(all.begin(), all.begin() + workers));
    program_ = &programs_.named(Collective::all_reduce, road.unit.way);
    layout_ = collective::Layout::even(program_->program(), workers_->rank(), count());
  }
  ~WorkersFlow() override { collective::let_go(workers_); }

  void start(const Departure& departure, net::Done done) override {
    if (!workers_) return done(nullptr);
    operation_ = departure.run.operation;
    courier().start_among(*workers_, *program_, layout_, {input(), output()}, departure.run, std::move(done));
  }
  void cancel(const net::Failure& why) override {
    if (workers_) workers_->cancel(operation_, why);
  }

 private:
  Programs programs_;
  std::shared_ptr<collective::Runner> workers_;  // nullptr on a server
  const collective::Verified* program_ = nullptr;
  collective::Layout layout_;
  std::uint64_t operation_ = 0;
};

class AllReduceWay final : public Way {
 public:
  using Way::Way;
  bool packs() const override { return true; }
  bool carries(const TensorSpec&) const override { return true; }
  std::vector<Leg> legs(const Load& load) const override {
    Leg leg{.program = name(), .elements = load.count, .element_bytes = size_of(load.first.type)};
    const std::uint32_t adding = who_add(load.ranks, load.servers);
    if (adding < load.ranks) leg.members = first_ranks(adding);
    return {leg};
  }
  std::uint32_t slice_bytes(const Load& load) const override {
    return collective::slice_bytes(Collective::all_reduce, name(), who_add(load.ranks, load.servers), load.bytes(), load.link);
  }
  std::unique_ptr<Flow> flow(const Road& road) const override {
    const std::uint32_t ranks = who_add(road.plan.ranks, road.plan.servers);
    if (ranks < road.plan.ranks) return std::make_unique<WorkersFlow>(road, ranks);
    return std::make_unique<AllReduceFlow>(road);
  }

 private:
  static std::vector<std::uint32_t> first_ranks(std::uint32_t count) {
    std::vector<std::uint32_t> ranks(count);
    std::iota(ranks.begin(), ranks.end(), 0U);
    return ranks;
  }
  std::uint32_t who_add(std::uint32_t ranks, std::uint32_t servers) const { return collective::is_of_network(name()) ? ranks : ranks - servers; }
};

}  // namespace

std::shared_ptr<const Way> make_all_reduce_way(const WayName& name) { return std::make_shared<AllReduceWay>(name.text()); }

}  // namespace shoal::exchange
