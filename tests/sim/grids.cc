// 2-D sums on tori and on a multipod, against the closed forms: seconds for what takes SimGrid minutes.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>

#include "shoal/collective/build_rings.h"
#include "shoal/collective/verify.h"
#include "shoal/core/host.h"
#include "shoal/sim/scenario.h"
#include "shoal/topo/generate.h"
#include "tests/sim/networks.h"
#include "tests/sim/two_dimensional.h"

namespace shoal::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kTorusRate = 70e9, kTorusHop = 5e-6;           // TPU v3: a link's direction; a hop
constexpr double kResNet50 = 102e6, kBert = 668e6;    // fp32 and bf16 gradients
constexpr bool kRing = true, kLine = false;

// One phase over n members: both directions of a ring, one of a line.
double phase(double n, double bytes, bool ring) { return bytes * (n - 1) / (n * (ring ? 2 : 1) * kTorusRate) + (n - 1) * kTorusHop; }
double torus_seconds(double x, double y, double bytes) {
  return 2 * std::max(phase(x, bytes / 2, kRing) + phase(y, bytes / 2 / x, kRing), phase(y, bytes / 2, kRing) + phase(x, bytes / 2 / y, kRing));
}
double multipod_seconds(double x, double y, double bytes) { return 2 * (phase(y, bytes, kRing) + phase(x, bytes / y, kLine)); }

void expect_about(double seconds, double expected) { EXPECT_NEAR(seconds / expected, 1, 0.05) << seconds << " s, expected " << expected; }

// How long it takes to simulate is for people.
double simulated(const char* what, const topo::Topology& network, const Job& sum) {
  const double began = cpu_seconds(), seconds = simulate_one(network, sum).seconds;
  std::cout << what << ": " << 1e3 * seconds << " ms, simulated in " << cpu_seconds() - began << " CPU-seconds\n";
  return seconds;
}

TEST(Grids, the_sums_are_real_programs) {
  collective::verify(torus_sum(4, 3));
  collective::verify(multipod_sum(5, 4));
}

TEST(Grids, a_torus_takes_what_its_closed_form_says) {
  const topo::Topology small = grid(8, 8, true, true, kTorusRate, 5us);
  Costs whole_chunks = Costs::links_only();  // or slices hide hops, which the closed form counts one by one
  whole_chunks.slice_bytes = 1 << 20;
  expect_about(simulate_one(small, job(torus_sum(8, 8), kResNet50), whole_chunks).seconds, torus_seconds(8, 8, kResNet50));
  const topo::Topology pod = grid(32, 32, true, true, kTorusRate, 5us);
  const Job sum = job(torus_sum(32, 32), kResNet50);
  expect_about(simulated("torus of 32x32, ResNet-50", pod, sum), torus_seconds(32, 32, kResNet50));
  Job larger = sum;
  larger.elements = static_cast<std::uint64_t>(kBert);
  expect_about(simulated("torus of 32x32, BERT", pod, larger), torus_seconds(32, 32, kBert));
}

// What `program build --mode torus` makes passes pieces on without waiting for a step to end, so that a hop counts where it is longer than the piece of the data that
// a step sends (else that hides it), and the closed form above is more than it takes.
double pipelined_phase(double n, double bytes) {
  const double piece = bytes / (2 * n * kTorusRate);
  return piece >= kTorusHop ? (n - 1) * piece + kTorusHop : (n - 1) * (piece + kTorusHop);
}

double simulated_as_built(const std::string& size, const std::string& wrap, const std::string& bytes) {
  const Scenario scenario = scenario_from_toml("shoal_sim = 1\n[topology]\nform = \"grid\"\nsize = " + size + "\nwrap = " + wrap +
                                                   "\nrate = \"560gbit\"\nlatency = \"5us\"\n[costs]\nmodel = \"links_only\"\n"
                                                   "[[run]]\nprogram = \"torus\"\nbytes = \"" + bytes + "\"\n",
                                               "s.toml", [](const std::string& file) { return file; });
  collective::verify(*scenario.jobs[0].program);
  const double began = cpu_seconds(), seconds = simulate(scenario.topology, scenario.jobs, {}, scenario.costs).seconds;
  std::cout << "grid of " << size << ", " << bytes << " as built: " << 1e3 * seconds << " ms, simulated in " << cpu_seconds() - began << " CPU-seconds\n";
  return seconds;
}

TEST(Grids, a_torus_made_and_read_as_a_user_does_takes_no_more_than_its_closed_form) {
  for (const auto& [bytes, written] : {std::pair(kResNet50, "102MB"), std::pair(kBert, "668MB")}) {
    const double seconds = simulated_as_built("[32, 32]", "[1, 2]", written);
    expect_about(seconds, 2 * (pipelined_phase(32, bytes / 2) + pipelined_phase(32, bytes / 2 / 32)));
    EXPECT_LE(seconds, torus_seconds(32, 32, bytes));
  }
}

// Along the open axis members meet in the middle (build_rings.h): each link direction carries what the rings left once, and the farthest hears the sum after
// as many hops as there are members, where reduce-scatter and all-gather along the line, as the closed form has them, carry it twice over twice the hops.
TEST(Grids, a_multipod_made_and_read_as_a_user_does_takes_less_than_its_closed_form) {
  for (const auto& [bytes, written] : {std::pair(kResNet50, "102MB"), std::pair(kBert, "668MB")}) {
    const double seconds = simulated_as_built("[128, 32]", "[2]", written);
    expect_about(seconds, 2 * pipelined_phase(32, bytes) + bytes / 32 / kTorusRate + 128 * kTorusHop);
    EXPECT_LE(seconds, multipod_seconds(128, 32, bytes));
  }
}

TEST(Grids, a_multipod_takes_what_its_closed_form_says) {
  const topo::Topology multipod = grid(128, 32, false, true, kTorusRate, 5us);
  Job sum = job(multipod_sum(128, 32), kResNet50);
  expect_about(simulated("multipod of 128x32, ResNet-50", multipod, sum), multipod_seconds(128, 32, kResNet50));
  sum.elements = static_cast<std::uint64_t>(kBert);
  expect_about(simulated("multipod of 128x32, BERT", multipod, sum), multipod_seconds(128, 32, kBert));
}

// Cho et al. (arXiv 1708.02188): rings among the four GPUs of a server first, then among the servers for a quarter of the data each, four at once on
// each server's line. 256 GPUs of 64 servers; a GPU's link 40 GB/s, a server's line 100 Gbit/s.
TEST(Grids, rings_inside_and_between_servers_scale_as_their_closed_form_says) {
  constexpr double kGpu = 40e9, kUplink = 12.5e9, kInside = 2e-6, kBetween = 8e-6;
  for (const std::uint32_t servers : {1U, 2U, 4U, 16U, 64U}) {
    const topo::Topology cluster = topo::fat_tree(servers, 4, {kGpu, 1us}, {kUplink, 3us});  // two links inside, four between
    const double others = (servers - 1.0) / servers;
    const double inside = 2 * (3. / 4 * kResNet50 / kGpu + 3 * kInside), between = 2 * (others * kResNet50 / kUplink + (servers - 1) * kBetween);
    const Job sum = job(collective::grid_all_reduce({{4}, {servers}}, collective::one_pass(2)), kResNet50);
    const double seconds = simulate_one(cluster, sum).seconds;
    expect_about(seconds, inside + between);
    const double one_ring = simulate_one(cluster, job(collective::ring_all_reduce(4 * servers), kResNet50)).seconds;
    std::cout << 4 * servers << " GPUs: " << 1e3 * seconds << " ms, one ring " << 1e3 * one_ring << " ms\n";
  }
}

}  // namespace
}  // namespace shoal::sim
