// The kernel against SimGrid (Casanova et al., JPDC 74, 2014) on random networks: flows with start times over shared links.
//
// SimGrid's model CM02 is told to share links max-min fairly and nothing else: no TCP window, no cross-traffic, factors 1. It weighs flows by
// their latencies, as TCP's round trips do, so all flows of a case have one latency, each on a link of its own (docs/simulation.md).
// network/optim:Full, because the lazy update that is SimGrid 3.32's default passes over a link's capacity now and then.
// SimGrid has one engine a process: all cases are one platform, side by side, and run at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <simgrid/s4u.hpp>

#include "shoal/sim/kernel.h"

namespace shoal::sim {
namespace {

namespace s4u = simgrid::s4u;

constexpr int kCases = 200;

struct Case {
  std::vector<double> capacities;
  double latency = 0;
  struct Flow {
    double start, bytes;
    std::vector<std::uint32_t> links;
  };
  std::vector<Flow> flows;
};

Case random_case(std::mt19937& random) {
  Case made;
  for (std::size_t i = 1 + random() % 8; i > 0; --i) made.capacities.push_back(1e6 * static_cast<double>(1 + random() % 100));
  if (random() % 2 == 0) made.latency = 1e-4 * static_cast<double>(1 + random() % 100);
  for (std::size_t i = 1 + random() % 12; i > 0; --i) {
    Case::Flow flow{0.1 * static_cast<double>(random() % 20), 1e5 * static_cast<double>(1 + random() % 200), {}};
    for (std::uint32_t link = 0; link < made.capacities.size(); ++link) {
      if (random() % 3 == 0) flow.links.push_back(link);
    }
    if (flow.links.empty()) flow.links.push_back(static_cast<std::uint32_t>(random() % made.capacities.size()));
    std::ranges::shuffle(flow.links, random);
    made.flows.push_back(flow);
  }
  return made;
}

std::vector<double> by_kernel(const Case& what) {
  Kernel kernel(what.capacities);
  std::vector<double> ends(what.flows.size());
  for (std::size_t i = 0; i < ends.size(); ++i) kernel.timer(what.flows[i].start + what.latency, i);
  for (Event event; kernel.next(event);) {
    const Case::Flow& flow = what.flows[event.token];
    if (event.kind == Event::Kind::timer) {
      kernel.flow(flow.links, flow.bytes, event.token);
    } else {
      ends[event.token] = kernel.now();
    }
  }
  return ends;
}

// [case][flow]
std::vector<std::vector<double>> by_simgrid(const std::vector<Case>& cases) {
  for (const char* setting : {"network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:no", "network/latency-factor:1",
                              "network/bandwidth-factor:1", "network/weight-S:0", "network/optim:Full", "surf/precision:1e-12"}) {
    s4u::Engine::set_config(setting);
  }
  s4u::Engine& engine = *s4u::Engine::get_instance();
  auto* const root = s4u::create_full_zone("all");
  std::vector<std::vector<double>> ends;
  for (const Case& what : cases) ends.emplace_back(what.flows.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "case" + std::to_string(i);
    auto* const zone = s4u::create_full_zone(name);
    zone->set_parent(root);
    std::vector<s4u::Link*> links;
    for (std::size_t link = 0; link < cases[i].capacities.size(); ++link) {
      links.push_back(zone->create_link(name + "_link" + std::to_string(link), cases[i].capacities[link])->set_latency(0)->seal());
    }
    for (std::size_t f = 0; f < cases[i].flows.size(); ++f) {
      const Case::Flow& flow = cases[i].flows[f];
      const std::string of = name + "_flow" + std::to_string(f);
      auto* const from = zone->create_host(of + "_from", 1e9)->seal();
      auto* const to = zone->create_host(of + "_to", 1e9)->seal();
      std::vector<s4u::LinkInRoute> route;
      for (const std::uint32_t link : flow.links) route.emplace_back(links[link]);
      route.emplace_back(zone->create_link(of + "_own", 1e12)->set_latency(cases[i].latency)->seal());
      zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
      s4u::Actor::create(of, from, [&ends, &flow, from, to, i, f] {
        s4u::this_actor::sleep_until(flow.start);
        s4u::Comm::sendto(from, to, static_cast<std::uint64_t>(flow.bytes));
        ends[i][f] = s4u::Engine::get_clock();
      });
    }
    zone->seal();
  }
  root->seal();
  engine.run();
  return ends;
}

TEST(AgainstSimGrid, ends_of_flows_agree_on_random_networks) {
  std::mt19937 random(8);
  std::vector<Case> cases;
  for (int i = 0; i < kCases; ++i) cases.push_back(random_case(random));
  const std::vector<std::vector<double>> expected = by_simgrid(cases);
  double farthest = 0;
  std::size_t flows = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::vector<double> ends = by_kernel(cases[i]);
    for (std::size_t f = 0; f < ends.size(); ++f, ++flows) {
      const double start = cases[i].flows[f].start, apart = std::abs(ends[f] - expected[i][f]) / (expected[i][f] - start);
      farthest = std::max(farthest, apart);
      EXPECT_LE(apart, 0.01) << "case " << i << ", flow " << f << ": " << ends[f] << " s, by SimGrid " << expected[i][f];
    }
  }
  std::cout << flows << " flows of " << cases.size() << " cases; the farthest is " << farthest << " off\n";
}

}  // namespace
}  // namespace shoal::sim

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const simgrid::s4u::Engine engine(&argc, argv);
  return RUN_ALL_TESTS();
}
