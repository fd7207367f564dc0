// Goal: a group whose members are all in another one goes by the network that this has found, all of its members by the same, and nothing is looked for
// again; any other group looks for itself. Method: members on threads, meeting on a board in memory. What would be looked for is a file that is not there.
#include "shoal/nn/group/group_networks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "shoal/topo/generate.h"
#include "tests/net/members.h"
#include "tests/nn/scripted_members.h"

namespace shoal::nn {
namespace {

using collective::KnownNetwork;
constexpr const char* kNoFile = "/no/such/topology.json";

// SHOAL_TOPOLOGY while a test runs.
class Says {
 public:
  explicit Says(const std::string& topology) {
    if (const char* const text = std::getenv(kVariable)) before_ = text;
    setenv(kVariable, topology.c_str(), 1);
  }
  ~Says() { before_ ? setenv(kVariable, before_->c_str(), 1) : unsetenv(kVariable); }
  Says(const Says&) = delete;

 private:
  static constexpr const char* kVariable = "SHOAL_TOPOLOGY";
  std::optional<std::string> before_;
};

// A board that holds its users to what any board takes.
class Board final : public net::Rendezvous {
 public:
  void put(const std::string& key, const std::string& value) override {
    EXPECT_LE(value.size(), kLongestValue) << key;
    board_.put(key, value);
  }
  std::string get(const std::string& key, Nanoseconds patience) override { return board_.get(key, patience); }

 private:
  net::Board board_;
};

// By rank, what the members of a group go by; or what is refused.
std::vector<std::string> known_to(GroupNetworks& networks, const GroupNetworks::Ranks& ranks) {
  const auto size = static_cast<net::Rank>(ranks.size());
  net::InprocJob network(size);
  Board board;
  std::vector<std::string> known(size);
  net::each(size, [&](net::Rank rank) {
    ScriptedJob job(network.member(rank));
    try {
      const auto link = links_of_group(job, networks, ranks, board, 20s);
      known[rank] = link.network ? link.network->to_json() : "none";
    } catch (const Error& error) {
      known[rank] = error.what();
    }
  });
  return known;
}

std::shared_ptr<const KnownNetwork> slow_third_of_four(std::uint32_t switches_that_lead_nowhere = 0) {
  topo::Topology star = topo::star(std::vector<topo::Wire>{{1e9}, {1e9}, {1e8}, {1e9}});
  for (std::uint32_t k = 0; k < switches_that_lead_nowhere; ++k) {
    star.switches.push_back("far_" + std::to_string(k));
    star.link_both_ways(static_cast<topo::Node>(star.nodes() - 2), static_cast<topo::Node>(star.nodes() - 1), 1e9);
  }
  return KnownNetwork::made_for(star);
}

TEST(GroupNetworks, a_group_within_another_goes_by_what_is_left_of_its_network) {
  const Says says(kNoFile);
  for (const std::uint32_t switches : {0U, 1000U}) {  // 1,000 take several pieces of the board
    const auto whole = slow_third_of_four(switches);
    GroupNetworks networks;
    const auto kept = networks.add({{10, 11, 12, 13}, whole});
    const std::vector<std::uint32_t> places{3, 0, 2};
    const std::string expected = whole->around(places)->to_json();
    EXPECT_EQ(known_to(networks, {13, 10, 12}), std::vector<std::string>(3, expected));
  }
}

TEST(GroupNetworks, where_the_wider_group_found_nothing_a_group_within_it_looks_for_nothing) {
  const Says says(kNoFile);
  GroupNetworks networks;
  const auto kept = networks.add({{0, 1, 2}, nullptr});
  EXPECT_EQ(known_to(networks, {2, 1}), std::vector<std::string>(2, "none"));
}

TEST(GroupNetworks, a_group_with_members_from_outside_looks_for_itself_and_all_hear_why_it_finds_none) {
  const Says says(kNoFile);
  GroupNetworks networks;
  const auto kept = networks.add({{0, 1, 2}, slow_third_of_four()});
  const auto refused = known_to(networks, {2, 3});
  EXPECT_EQ(refused[0].find(kNoFile), 0U) << refused[0];
  EXPECT_NE(refused[1].find(refused[0]), std::string::npos) << refused[1];
}

TEST(GroupNetworks, a_network_is_known_as_long_as_its_group_is_there) {
  GroupNetworks networks;
  auto kept = networks.add({{0, 1, 2}, nullptr});
  EXPECT_NE(networks.of({2, 0}), nullptr);
  EXPECT_EQ(networks.of({2, 3}), nullptr);
  kept.reset();
  EXPECT_EQ(networks.of({2, 0}), nullptr);
}

TEST(GroupNetworks, who_wants_none_gets_none) {
  const Says says("none");
  GroupNetworks networks;
  const auto kept = networks.add({{0, 1, 2, 3}, slow_third_of_four()});
  EXPECT_EQ(known_to(networks, {0, 1}), std::vector<std::string>(2, "none"));
}

}  // namespace
}  // namespace shoal::nn
