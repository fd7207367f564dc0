// Blink's table: build/release/bench/packing/bench_blink_table
//
// For each of the 46 + 14 classes of 3 to 8 GPUs of a DGX-1 that NVLinks connect: how fast a broadcast (from the best root) and an all-reduce go at most,
// how fast on the trees that Blink chooses and how many these are, how fast on rings (rings.h; where there is none over PCIe, a quarter of an
// NVLink), and what the trees gain. Rates in those of an NVLink. Fails where a rate is not the golden one of tests/packing/data.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "shoal/packing/blink.h"
#include "shoal/packing/rings.h"
#include "tests/packing/nvlink_allocations.h"

namespace shoal::packing {
namespace {

constexpr double kPcie = 0.25;

struct Column {                // a collective of one class
  double best = 0, blink = 0, ring = 0;
  std::size_t trees = 0;
  std::string shown() const {
    return fmt::format("{:6.3f} {:6.3f} {:2}  {:6.3f} {:6.3f} {:5.2f}x", best, best / ring, trees, blink, ring, blink / ring);
  }
};

struct Means {                 // geometric, of gains
  double best = 0, blink = 0, least_kept = 1;
  int classes = 0, ringless = 0;
  void add(const Column& column, bool has_rings) {
    best += std::log(column.best / column.ring);
    blink += std::log(column.blink / column.ring);
    least_kept = std::min(least_kept, column.blink / column.best);
    ++classes;
    ringless += has_rings ? 0 : 1;
  }
  std::string shown() const {
    return fmt::format("{:.2f}x on the best trees, {:.2f}x on Blink's, which keep {:.1f} % or more", std::exp(best / classes),
                       std::exp(blink / classes), 100 * least_kept);
  }
};

int table() {
  int wrong = 0;
  std::string machine;
  Means broadcasts, all_reduces;
  const auto sum_up = [&] {
    if (broadcasts.classes == 0) return;
    fmt::print("{}, {} classes, {} without a ring\n  broadcast:  {}\n  all_reduce: {}\n\n", machine, broadcasts.classes, broadcasts.ringless,
               broadcasts.shown(), all_reduces.shown());
    broadcasts = all_reduces = {};
  };
  const auto began = std::chrono::steady_clock::now();
  for (const auto& entry : nvlink_classes(SHOAL_PACKING_DATA)) {
    if (entry["machine"] != machine) {
      sum_up();
      machine = entry["machine"];
      fmt::print("{:<22} {:<40} {}\n{:<22} {:>6} {:>6} {:>2}  {:>6} {:>6} {:>6} {:>6} {:>6} {:>2}  {:>6} {:>6} {:>6}\n", machine, "broadcast",
                 "all_reduce", "", "best", "gain", "k", "Blink", "ring", "gain", "best", "gain", "k", "Blink", "ring", "gain");
    }
    const Network network(allocation(entry));
    const auto rings = static_cast<std::uint32_t>(most_rings(network).size());
    const RingRates ring = ring_rates(network.hosts(), rings, kPcie);
    Column broadcast, all_reduce;
    Node root = 0;
    for (Node host = 0; host < network.hosts(); ++host) {
      const double rate = pack_exactly(network, Demand::broadcast, host).rate;
      if (rate > broadcast.best * (1 + 1e-6)) broadcast.best = rate, root = host;
    }
    all_reduce.best = pack_exactly(network, Demand::all_reduce).rate;
    const auto fill = [&](Column& column, Demand demand, double on_rings) {
      const Packing blink = pack_blink(network, demand, root);
      column.blink = blink.rate;
      column.trees = blink.trees.size();
      column.ring = on_rings;
    };
    fill(broadcast, Demand::broadcast, ring.broadcast);
    fill(all_reduce, Demand::all_reduce, ring.all_reduce);
    broadcasts.add(broadcast, rings > 0);
    all_reduces.add(all_reduce, rings > 0);
    const std::vector<int> gpus = entry["gpus"];
    fmt::print("{:<22} {}  {}\n", fmt::format("{}", fmt::join(gpus, ",")), broadcast.shown(), all_reduce.shown());
    const bool golden = std::abs(all_reduce.best - fraction(entry["allreduce_rate"])) < 1e-4 && rings == entry["max_disjoint_hamiltonian_cycles"] &&
                        std::abs(broadcast.best - entry["broadcast_rate_best_root"].get<double>()) < 1e-4;
    if (!golden) fmt::print("  not the golden figures\n"), ++wrong;
  }
  sum_up();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  fmt::print("{} of 60 classes differ from the golden figures; {:.2f} s\n", wrong, took.count());
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace shoal::packing

int main() { return shoal::packing::table(); }
