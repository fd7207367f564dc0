// How near compiled programs come to the bound, and how long compiling takes:
//
//     SHOAL_DATA=FOLDER build/release/bench/packing/bench_efficiency            # the folder of the real data sets; without it the samples of tests/topo/data
//
// For each network, exact trees and at most 16: the packing's rate over the bound, and the program's own rate, counted in its ops along the routes that
// its bytes take (where ways of equal cost are hashed onto links, that is less). Each program is proved by the verifier and its certificate checked
// before it counts; bounds of all-reduce are held against the figures of others where the data have some, and the program fails where they differ.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shoal/collective/synthesize.h"
#include "shoal/collective/verify.h"
#include "shoal/topo/generate.h"
#include "tests/packing/nvlink_allocations.h"
#include "tests/topo/sample_networks.h"

namespace shoal::collective {
namespace {

using topo::Topology;

struct Options {
  std::vector<std::string> collectives{"all_reduce"};
  std::uint32_t most_hosts = kMostExactHosts, worst = 8;
  std::vector<std::uint32_t> sizes{16, 64, 1024};
};

double seconds(const std::function<void()>& what) {
  const auto began = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

struct Compiled {
  std::size_t trees = 0;
  double packed = 0, by_ops = 0, bound = 0, seconds = 0, proving = 0;  // the first two: of the bound
};

Compiled compile(const Topology& topology, Collective collective, Synthesis how) {
  Compiled made;
  Program program;
  made.seconds = seconds([&] { program = synthesize(topology, collective, how); });
  made.proving = seconds([&] { verify(program); });
  const Proof proof = check_certificate(program, topology);
  made.trees = in_parts(collective) ? program.chunks / program.ranks : program.chunks;
  made.by_ops = proof.efficiency();
  made.bound = proof.bound;
  return made;
}

// What the packing claims before routes are drawn. Not timed: the program's compilation has it.
double packed_efficiency(const Topology& topology, packing::Demand demand, bool exactly) {
  const packing::Network network(topology);
  const packing::Packing exact = packing::pack_exactly(network, demand, 0);
  return exactly ? exact.efficiency() : packing::pack_few(network, demand, 0, &exact).efficiency();
}

constexpr double kShort = 0.999;

// No program of trees is faster along the routes that bytes take: proved, as the bound is, by prices.
double most_along_routes(const Topology& topology, packing::Demand demand) {
  return packing::pack_exactly(packing::Network::along_routes(topology), demand, 0).bound;
}

struct Row {
  std::string network;
  std::size_t hosts;
  Compiled exact, few;
  double along_routes = 1;  // at most, of the bound; looked at where a program falls short
};

std::string shown(const Row& row) {
  const auto half = [](const Compiled& of) {
    return fmt::format("{:.4f} {:.4f} {:3}  {:6.3f} s", of.packed, of.by_ops, of.trees, of.seconds);
  };
  return fmt::format("{:<28.28} {:4}  {}   {}  {:.4f}", row.network, row.hosts, half(row.exact), half(row.few), std::min(row.along_routes, 1.0));
}

// A set of networks: what it comes to at the least, and its worst.
class Set {
 public:
  Set(std::string title, Collective collective) : title_(std::move(title)), collective_(collective) {}

  // `golden`: the bound in the topology's unit as others computed it; 0 where nobody did.
  void add(const std::string& network, const Topology& topology, double golden = 0) {
    Row row{network, topology.hosts.size(), compile(topology, collective_, Synthesis::exact),
            compile(topology, collective_, Synthesis::few)};
    row.exact.packed = packed_efficiency(topology, *demand_of(collective_), true);
    row.few.packed = packed_efficiency(topology, *demand_of(collective_), false);
    if (std::min(row.exact.by_ops, row.few.by_ops) < kShort) row.along_routes = most_along_routes(topology, *demand_of(collective_)) / row.exact.bound;
    if (golden != 0 && std::abs(row.exact.bound / golden - 1) > 1e-4) {
      fmt::print("{}: the bound is {:.6g}, others say {:.6g}\n", network, row.exact.bound, golden);
      ++wrong_;
    }
    rows_.push_back(std::move(row));
  }

  int print(std::uint32_t worst) {
    if (rows_.empty()) return wrong_;
    const auto least = [&](auto of) { return std::ranges::min(rows_, {}, of); };
    const auto few = [](const Row& row) { return std::min(row.few.packed, row.few.by_ops); };
    const auto longest = std::ranges::max(rows_, {}, [](const Row& row) { return row.exact.seconds + row.few.seconds; });
    fmt::print(
        "\n{}, {}: {} networks. Exact {:.4f} or more (by ops {:.4f}), few {:.4f} or more (by ops {:.4f}); {} of 0.95 or more, "
        "{} trees at most; slowest {}, {:.2f} + {:.2f} s\n",
        title_, name(collective_), rows_.size(), least([](const Row& row) { return row.exact.packed; }).exact.packed,
        least([](const Row& row) { return row.exact.by_ops; }).exact.by_ops,
        least([](const Row& row) { return row.few.packed; }).few.packed,
        least([](const Row& row) { return row.few.by_ops; }).few.by_ops,
        std::ranges::count_if(rows_, [&](const Row& row) { return few(row) >= 0.95; }),
        std::ranges::max(rows_, {}, [](const Row& row) { return row.few.trees; }).few.trees, longest.network,
        longest.exact.seconds, longest.few.seconds);
    std::ranges::stable_sort(rows_, {}, few);
    fmt::print("  {:<28} {:>5}  {:<30} {:<30} {}\n", "the worst", "hosts", "exact: packed by ops trees", "at most 16: packed by ops trees",
               "any trees along routes");
    for (std::size_t k = 0; k < std::min<std::size_t>(worst, rows_.size()); ++k) fmt::print("  {}\n", shown(rows_[k]));
    return wrong_;
  }

 private:
  std::string title_;
  Collective collective_;
  std::vector<Row> rows_;
  int wrong_ = 0;
};

// The all-reduce bound that a file of the research notes names, in bytes/s or link units; 0 for files that name none.
double golden_bound(const std::string& text, const Topology& topology) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("reference") || !json["reference"].contains("allreduce_max_algbw")) return 0;
  const double unit = topology.relative ? 1 : topology.links.at(0).rate / json["links"].at(0)["bw"].get<double>();
  return json["reference"]["allreduce_max_algbw"].get<double>() * unit;
}

int data_sets(const Options& options, Collective collective) {
  Set classes("NVLink allocation classes", collective), topologies("topologies", collective),
      zoo("Topology Zoo networks with speeds", collective);
  const bool is_sum = collective == Collective::all_reduce;
  for (const auto& entry : packing::nvlink_classes(SHOAL_PACKING_DATA)) {
    classes.add(fmt::format("{} {}", entry["machine"].get<std::string>().substr(0, 5),
                            fmt::join(entry["gpus"].get<std::vector<int>>(), ",")),
                packing::allocation(entry), is_sum ? packing::fraction(entry["allreduce_rate"]) : 0);
  }
  std::size_t larger = 0, parts = 0;
  for (const topo::Sample& sample : topo::sample_networks(SHOAL_TOPO_DATA)) {
    if (sample.is_gml && sample.text.find("LinkSpeedRaw") == std::string::npos) continue;  // no speeds
    if (sample.topology.hosts.size() > options.most_hosts) {
      ++larger;
      continue;
    }
    const bool whole = topo::in_one_piece(sample.topology);  // else its largest part
    parts += whole ? 0 : 1;
    const Topology topology =
        whole ? sample.topology : topo::restricted_to(sample.topology, topo::components(sample.topology).hosts.front());
    (sample.is_gml ? zoo : topologies).add(sample.name, topology, is_sum && whole ? golden_bound(sample.text, topology) : 0);
  }
  const int wrong = classes.print(options.worst) + topologies.print(options.worst) + zoo.print(options.worst);
  fmt::print("left out: {} networks of more than {} hosts; of {} in several pieces the largest stands for it\n", larger,
             options.most_hosts, parts);
  return wrong;
}

std::vector<Topology> families(std::uint32_t hosts) {
  const topo::Wire wire{125e6, Nanoseconds(0)}, thin{62.5e6, Nanoseconds(0)};
  auto side = static_cast<std::uint32_t>(std::lround(std::sqrt(hosts)));
  while (hosts % side != 0) --side;
  const std::uint32_t other = hosts / side;
  const auto grid = [&](bool wraps, std::vector<topo::Block> dead) {
    return topo::grid({{side, other}, {wraps, wraps}, wire, std::move(dead)});
  };
  std::vector<topo::Wire> wires(hosts, wire);
  for (std::uint32_t host = 0; host < hosts; host += 4) wires[host] = thin;
  return {topo::star(std::vector<topo::Wire>(hosts, wire)),
          topo::star(wires),
          topo::fat_tree(side, other, wire, {wire.rate * other / 8, wire.latency}),
          topo::multi_site(4, hosts / 4, wire, thin),
          grid(true, {}),
          grid(false, {}),
          grid(false, {{{0, 0}, {2, 2}}})};
}
constexpr const char* kFamilies[] = {"star", "star, every fourth slow", "fat tree, 8:1", "four sites", "torus",
                                     "mesh", "mesh with a hole"};

void compile_times(const Options& options, Collective collective) {
  fmt::print("\nCompile times of {}, seconds, and what comes of it; proving beside\n  {:<26} {:>5}  {:<34} {}\n",
             name(collective), "network", "hosts", "exact: s, proving, of the bound",
             "at most 16 trees: s, proving, of the bound");
  for (const std::uint32_t size : options.sizes) {
    const std::vector<Topology> networks = families(size);
    for (std::size_t k = 0; k < networks.size(); ++k) {
      const auto half = [&](Synthesis how) {
        if (how == Synthesis::exact && size > kMostExactHosts) return std::string(25, ' ');
        const Compiled made = compile(networks[k], collective, how);
        return fmt::format("{:7.3f} {:7.3f} {:8.4f} ", made.seconds, made.proving, made.by_ops);
      };
      fmt::print("  {:<26} {:5}  {}          {}\n", kFamilies[k], networks[k].hosts.size(), half(Synthesis::exact),
                 half(Synthesis::few));
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace shoal::collective

int main(int argc, char** argv) {
  using namespace shoal::collective;
  Options options;
  CLI::App app{"How near compiled programs come to the bound, and how long compiling takes."};
  app.add_option("--collectives", options.collectives, "all_reduce, broadcast, reduce, all_gather, reduce_scatter");
  app.add_option("--most-hosts", options.most_hosts, "of the networks in files")->check(CLI::Range(1U, kMostExactHosts));
  app.add_option("--sizes", options.sizes, "hosts of the structured networks whose compilation is timed; none: 0")
      ->check(CLI::Range(0U, 4096U));
  app.add_option("--worst", options.worst, "networks shown of each set");
  CLI11_PARSE(app, argc, argv);
  std::erase(options.sizes, 0U);
  int wrong = 0;
  for (const std::string& text : options.collectives) {
    const auto collective = collective_called(text);
    if (!collective || !has_bound(*collective))
      return app.exit(CLI::ValidationError("--collectives", "no trees are packed for " + text));
    wrong += data_sets(options, *collective);
    compile_times(options, *collective);
  }
  fmt::print("\n{} bounds differ from others' figures\n", wrong);
  return wrong == 0 ? 0 : 1;
}
