// Every builder on every network: of tests/topo/data, of the real data sets where they are (tests/topo/sample_networks.h), and 2,000 random ones; and
// programs made for forms on 200 random networks that have one.
//
// Each program is proved by the verifier and executed with whole numbers over the scripted network; both depend on the number of members alone where a
// builder knows no more, and are done once for each. On each network its rate by its ops is held against the bound that packing proves.
// SHOAL_MOST_HOSTS: of the networks looked at; 64 where Shoal finds exact bounds.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <tuple>

#include "shoal/collective/congestion.h"
#include "shoal/collective/forms.h"
#include "shoal/collective/synthesize.h"
#include "shoal/core/error.h"
#include "tests/collective/scripted_group.h"
#include "tests/from_environment.h"
#include "tests/refusal.h"
#include "tests/topo/random_networks.h"
#include "tests/topo/sample_networks.h"

namespace shoal::collective {
namespace {

constexpr double kSlack = 1e-6;  // what LP and sums of doubles may be off

// Builders' programs, each proved and run once, of whichever network it was asked for first.
class Built {
 public:
  const Program& program(Collective collective, const std::string& name, std::uint32_t ranks, std::uint32_t root) {
    const auto [found, is_new] = programs_.try_emplace({collective, name, ranks, root});
    if (is_new) {
      found->second = build(collective, name, ranks, root);
      expect_runs(found->second, 3 * ranks + 1, ranks);
    }
    return found->second;
  }
  std::size_t count() const { return programs_.size(); }

 private:
  std::map<std::tuple<Collective, std::string, std::uint32_t, std::uint32_t>, Program> programs_;
};

void expect_below_the_bound(const Program& program, const topo::Topology& topology, double bound) {
  EXPECT_LE(congestion(program, topology).rate, bound * (1 + kSlack)) << program.name << " " << name(program.collective);
}

// What knows more of a network than its number of hosts.
void expect_network_programs(const topo::Topology& topology, double bound, std::map<std::string, int>* forms = nullptr) {
  for (const Program& program : programs_of_form(topology)) {
    expect_runs(program, 1009, 1);
    expect_below_the_bound(program, topology, bound);
    if (forms != nullptr) ++(*forms)[program.name];
  }
}

// Of one collective: builders' programs and those made for the network. Gives the bound.
double expect_collective(Built& built, const topo::Topology& topology, Collective collective, std::uint32_t root) {
  const auto ranks = static_cast<std::uint32_t>(topology.hosts.size());
  double bound = std::numeric_limits<double>::infinity();
  for (const Synthesis how : {Synthesis::exact, Synthesis::few, Synthesis::blink}) {
    if (!has_bound(collective)) break;
    if (how == Synthesis::blink && collective != Collective::all_reduce && collective != Collective::broadcast &&
        collective != Collective::reduce)
      continue;
    const Program program = synthesize(topology, collective, how, root);
    expect_runs(program, 2 * ranks + 1, ranks);
    if (ranks == 1) continue;
    const Proof proof = check_certificate(program, topology);
    EXPECT_LE(proof.rate, proof.bound * (1 + kSlack)) << program.name << " " << name(collective);
    bound = std::min(bound, proof.bound);
  }
  for (const std::string& name : builder_names(collective)) {
    const Program& program = built.program(collective, name, ranks, has_root(collective) ? root : 0);
    if (ranks > 1 && has_bound(collective)) expect_below_the_bound(program, topology, bound);
  }
  return bound;
}

TEST(EveryNetwork, every_builder_is_right_on_every_sample_and_none_beats_the_bound) {
  const std::uint64_t most_hosts = std::min<std::uint64_t>(from_environment("SHOAL_MOST_HOSTS", 16), kMostExactHosts);
  Built built;
  std::size_t networks = 0, larger = 0, apart = 0;
  for (const topo::Sample& sample : topo::sample_networks(SHOAL_TOPO_DATA)) {
    SCOPED_TRACE(sample.name);
    const auto ranks = static_cast<std::uint32_t>(sample.topology.hosts.size());
    if (ranks > most_hosts) {
      ++larger;
      continue;
    }
    if (!topo::in_one_piece(sample.topology)) {
      EXPECT_NE(refusal([&] { synthesize(sample.topology, Collective::all_reduce); }).find("nothing leads from "),
                std::string::npos);
      ++apart;
      continue;
    }
    double all_reduce = 0;
    for (const Collective collective : kCollectives) {
      const double bound = expect_collective(built, sample.topology, collective, ranks / 2);
      if (collective == Collective::all_reduce) all_reduce = bound;
      if (HasFatalFailure()) return;
    }
    expect_network_programs(sample.topology, all_reduce);
    if (HasFatalFailure()) return;
    ++networks;
  }
  EXPECT_GT(networks, 10U);
  std::printf("%zu networks, %zu builders' programs run; %zu networks in several pieces, %zu of more than %d hosts\n", networks,
              built.count(), apart, larger, static_cast<int>(most_hosts));
}

TEST(EveryNetwork, every_builder_is_right_on_2000_random_networks_and_none_beats_the_bound) {
  Built built;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const topo::Topology topology =
        topo::random_network(seed, {.most_hosts = 9, .most_switches = 3, .symmetric = seed % 2 == 0});
    SCOPED_TRACE(topology.name);
    const Collective collective = kCollectives[seed / 2 % std::size(kCollectives)];
    expect_collective(built, topology, collective, static_cast<std::uint32_t>(seed % topology.hosts.size()));
    if (HasFailure()) return;
  }
  EXPECT_GT(built.count(), 200U);
}

TEST(EveryNetwork, every_form_is_right_on_random_regular_networks_and_none_beats_the_bound) {
  std::map<std::string, int> forms;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const topo::Topology topology = topo::random_regular_network(seed);
    SCOPED_TRACE(topology.name);
    const double bound = check_certificate(synthesize(topology, Collective::all_reduce, Synthesis::few), topology).bound;
    expect_network_programs(topology, bound, &forms);
    if (HasFailure()) return;
  }
  for (const char* const form : kForms) EXPECT_GT(forms[form], 3) << form;
}

}  // namespace
}  // namespace shoal::collective
