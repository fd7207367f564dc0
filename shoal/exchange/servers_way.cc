// "servers:COUNT": the last COUNT members bring no gradients; they are spare machines that add. Every member owns a part of the tensor, a server's
// larger than a worker's, so that all links are equally busy (Jiang et al., "BytePS", OSDI 2020; research/sync.md 2.4). Of n workers, k <= n
// servers and D = n² + k n - 2 k, a server owns 2 (n - 1) / D of the tensor, a worker (n - k) / D, and the exchange takes
// 2 n (n - 1) / D of the tensor's time on a link: between 2 (n - 1) / n without servers and 1 with as many as workers.
//
// Added in rank order: exact. A server has no data (weight 0); a gradient of its own would be left out, and so is refused.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "shoal/collective/build.h"
#include "shoal/core/error.h"
#include "shoal/exchange/packed_flow.h"
#include "shoal/exchange/programs.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

// Shares of the tensor.
struct Shares {
  double worker = 0, server = 0;
  Shares(double n, double k) {
    const double d = n * n + k * n - 2 * k;
    worker = k < n ? (n - k) / d : 0;
    server = k < n ? 2 * (n - 1) / d : 1 / k;
  }
};

// Elements of each member's part.
std::vector<std::uint64_t> parts_of(std::uint64_t count, std::uint32_t ranks, std::uint32_t servers) {
  const std::uint32_t workers = ranks - servers;
  const Shares shares(workers, servers);
  std::vector<std::uint64_t> parts;
  std::uint64_t begin = 0;
  double end = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    end += (rank < workers ? shares.worker : shares.server) * static_cast<double>(count);
    const auto next = rank + 1 == ranks ? count : std::clamp(static_cast<std::uint64_t>(std::llround(end)), begin, count);
    parts.push_back(next - begin);
    begin = next;
  }
  return parts;
}

class ServersFlow final : public PackedFlow {
 public:
  ServersFlow(const Road& road, std::uint32_t servers)
      : PackedFlow(road), workers_(road.plan.ranks - servers), program_(road.programs.served(servers)) {
    layout_.count = parts_of(count(), road.plan.ranks, servers);
    layout_.input.resize(layout_.count.size());
    std::exclusive_scan(layout_.count.begin(), layout_.count.end(), layout_.input.begin(), std::uint64_t{0});
    layout_.output = layout_.input;
  }

  void start(const Departure& departure, net::Done done) override {
    courier().start(program_, layout_, {input(), output()}, departure.run, std::move(done));
  }

 private:
  void seal() override {
    if (!has_any() || courier().runner().rank() < workers_) return;
    throw Error(Code::invalid_argument, "rank " + std::to_string(courier().runner().rank()) + " is a server of this plan and has a gradient", "plan",
                "let the members before it train, and this one wait in model.join()");
  }

  const std::uint32_t workers_;
  const collective::Verified& program_;
  collective::Layout layout_;
};

class ServersWay final : public Way {
 public:
  ServersWay(std::string name, std::uint32_t servers) : Way(std::move(name)), servers_(servers) {}
  bool packs() const override { return true; }
  bool carries(const TensorSpec& tensor) const override { return !tensor.sparse; }
  void check(std::uint32_t ranks) const override {
    if (ranks > servers_) return;
    throw Error(Code::invalid_argument, name() + " leaves none of " + std::to_string(ranks) + " members to train", "plan");
  }
  std::vector<Leg> legs(const Load& load) const override {
    check(load.ranks);
    return {{.program = name(), .elements = load.count, .element_bytes = size_of(load.first.type), .chunks = parts_of(load.count, load.ranks, servers_)}};
  }
  // collective::price() knows nothing of parts that differ.
  Cost cost(const Load& load) const override {
    check(load.ranks);
    const double n = load.ranks - servers_;
    const Shares shares(n, servers_);
    const double sent = std::max(n * shares.server, 1 + (n - 2) * shares.worker) * load.bytes();
    // As direct between all members, whose flows meet as these do, of so many bytes that a member sends as much.
    const double same = sent * load.ranks / (2 * (load.ranks - 1.0));
    const double share = wire_share(load);
    return {.sent = sent, .wire = share * sent, .link = collective::price(Collective::all_reduce, "direct", load.ranks, share * same, load.link)};
  }
  std::unique_ptr<Flow> flow(const Road& road) const override { return std::make_unique<ServersFlow>(road, servers_); }

 private:
  const std::uint32_t servers_;
};

}  // namespace

std::shared_ptr<const Way> make_servers_way(const WayName& name) {
  const double servers = name.number(0, "the number of servers", 1, collective::kMaxRanks, 1);
  if (servers != std::floor(servers)) name.refuse("the number of servers is not whole");
  return std::make_shared<ServersWay>(name.text(), static_cast<std::uint32_t>(servers));
}

}  // namespace shoal::exchange
