// Forms among the programs that a known network is chosen from: torus, hierarchical and the like, as training and the c10d backend take them. Method:
// generated networks, prices held against closed forms, and what was chosen run with whole numbers on the scripted network.
#include "shoal/collective/known_network.h"

#include <gtest/gtest.h>

#include "shoal/collective/build.h"
#include "shoal/collective/hosts.h"
#include "shoal/collective/select.h"
#include "shoal/topo/generate.h"
#include "tests/collective/scripted_group.h"
#include "tests/refusal.h"

namespace shoal::collective {
namespace {

constexpr double kLinkRate = 125e6;

topo::Topology torus_of_16() { return topo::grid({{4, 4}, {true, true}, {kLinkRate, {}}, {}}); }

LinkModel link_knowing(std::shared_ptr<const KnownNetwork> network, const char* tune = nullptr) {
  LinkModel link{.alpha = 1e-4, .rate = kLinkRate};
  link.network = std::move(network);
  if (tune != nullptr) link.tuning = std::make_shared<const Tuning>(tune);
  return link;
}

std::string chosen(double bytes, const LinkModel& link, bool left_fold_only = false) {
  return choose(Collective::all_reduce, link.network->ranks(), bytes, link, left_fold_only);
}

const Program& program_chosen(double bytes, const LinkModel& link) {
  return link.network->made(Collective::all_reduce, chosen(bytes, link))->program();
}

// 4 x 4 chips: every link direction is busy all the time, 15/32 of the data on each, in 2 (3 + 3) steps; nothing else is as quick.
TEST(NetworkForms, the_torus_is_chosen_on_a_torus_at_its_closed_form_s_price_and_adds_up) {
  const LinkModel link = link_knowing(KnownNetwork::made_for(torus_of_16()));
  constexpr double kBytes = 64e6;
  EXPECT_EQ(chosen(kBytes, link), kTorus);
  const double price_of_torus = price(Collective::all_reduce, kTorus, 16, kBytes, link);
  EXPECT_NEAR(price_of_torus, 12 * 1e-4 + kBytes * 15 / 32 / kLinkRate + kBytes * 15 / 16 / link.add_rate, 1e-6 * price_of_torus);
  for (const std::string name : {kTrees, kMeshRing, kRowPair, kOrderedRing, "ring", "grid", "swing", "halving_doubling", "double_binary_tree"}) {
    EXPECT_GT(price(Collective::all_reduce, name, 16, kBytes, link), price_of_torus) << name;
  }
  expect_runs(program_named(Collective::all_reduce, chosen(kBytes, link), 16, 0, link.network.get()).program(), 1009, 1);

  EXPECT_FALSE(is_of_network(chosen(64, link)));                                       // few messages matter more
  EXPECT_FALSE(is_of_network(chosen(kBytes, link, true)));                             // in rank order only
  EXPECT_NE(choose(Collective::all_reduce, 15, kBytes, link), kTorus);                 // a group of other hosts
  EXPECT_NE(choose(Collective::all_gather, 16, kBytes, link), kTorus);
  EXPECT_EQ(chosen(kBytes, link_knowing(KnownNetwork::without_trees(torus_of_16()))), kTorus);
}

// Two switches of four hosts, a tenth of the rate between them: that line carries the data once each way, if hosts of one switch add first.
TEST(NetworkForms, hosts_on_two_switches_add_inside_first) {
  const LinkModel link = link_knowing(KnownNetwork::made_for(topo::multi_site(2, 4, {kLinkRate, {}}, {kLinkRate / 10, {}})));
  EXPECT_EQ(chosen(16e6, link), kHierarchical);
  expect_runs(program_chosen(16e6, link), 1009, 2);
  // Rings inside, then between, are as good between the switches, but wait for each other: 1 of the data between, and inside 2 * 3/4.
  EXPECT_NEAR(price(Collective::all_reduce, kMultiRing, 8, 16e6, link), 8 * 1e-4 + 16e6 * (1.5 / kLinkRate + 10 / kLinkRate) + 16e6 * 0.875 / link.add_rate, 1e-6);
}

TEST(NetworkForms, what_people_wish_goes_before_prices) {
  const auto network = KnownNetwork::made_for(torus_of_16());
  EXPECT_NE(chosen(64e6, link_knowing(network, "allreduce:@torus:0")), kTorus);
  EXPECT_EQ(chosen(64, link_knowing(network, "allreduce:@torus")), kTorus);
  for (const char* form : {kMeshRing, kRowPair, kOrderedRing}) {
    const LinkModel link = link_knowing(network, (std::string("allreduce:1M-inf:@") + form).c_str());
    EXPECT_EQ(chosen(64e6, link), form);
    expect_runs(program_chosen(64e6, link), 509, 3);
  }
  EXPECT_EQ(chosen(64e6, link_knowing(network, "allreduce:@multi_ring")), kTorus);  // there are no switches
  EXPECT_EQ(refusal([] { Tuning("allgather:@torus"); }),
            "SHOAL_TUNE: \"allgather:@torus\": no program torus for all_gather: direct, ring or trees (rules are like allreduce:1M-inf:@trees, separated by #)");
  EXPECT_EQ(refusal([&] { program_named(Collective::all_reduce, kMultiRing, 16, 0, network.get()); }),
            "multi_ring: no network of this form is known for all_reduce of 16 members (say which network this is: SHOAL_TOPOLOGY=FILE, a topology of as many "
            "hosts, 64 at most)");
}

// The hole that a lost block of four leaves has a ring round it, and what is left is no whole torus.
TEST(NetworkForms, those_that_are_left_have_the_forms_of_what_is_left) {
  const auto whole = KnownNetwork::made_for(torus_of_16());
  std::vector<std::uint32_t> left;
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    if (rank != 2 && rank != 3 && rank != 6 && rank != 7) left.push_back(rank);
  }
  const auto rest = KnownNetwork::heard(whole->words_around(left));
  EXPECT_EQ(rest->made(Collective::all_reduce, kTorus), nullptr);
  ASSERT_NE(rest->made(Collective::all_reduce, kMeshRing), nullptr);
  expect_runs(rest->made(Collective::all_reduce, kMeshRing)->program(), 509, 4);
}

// Rows become ten times as quick, and a torus made for that would begin with them. In words, too, the program stays the one that sums were added by.
TEST(NetworkForms, measured_anew_keep_their_programs_also_in_words_and_follow_the_links_in_price) {
  topo::Topology now = torus_of_16();
  for (topo::Link& link : now.links) link.rate *= link.from / 4 == link.to / 4 ? 10 : 1;
  const auto before = KnownNetwork::made_for(torus_of_16()), after = before->measured_anew(now);
  const auto read = KnownNetwork::from_json(after->to_json(), "plan");
  EXPECT_EQ(read->to_json(), after->to_json());
  for (const char* form : {kTorus, kMeshRing, kOrderedRing}) {
    const std::string program = to_json(before->made(Collective::all_reduce, form)->program());
    EXPECT_EQ(to_json(after->made(Collective::all_reduce, form)->program()), program) << form;
    EXPECT_EQ(to_json(read->made(Collective::all_reduce, form)->program()), program) << form;
    EXPECT_EQ(read->rate(Collective::all_reduce, form), after->rate(Collective::all_reduce, form)) << form;
  }
  EXPECT_NE(to_json(KnownNetwork::made_for(now)->made(Collective::all_reduce, kTorus)->program()),
            to_json(before->made(Collective::all_reduce, kTorus)->program()));
  EXPECT_GT(KnownNetwork::made_for(now)->rate(Collective::all_reduce, kTorus), after->rate(Collective::all_reduce, kTorus));
  std::string other = after->to_json();
  const auto at = other.find("\"form\":");
  ASSERT_NE(at, std::string::npos);
  other.replace(at, 7, "\"form\":{\"compute\":[\"a\",\"b\"],\"switches\":[],\"links\":[],\"bandwidth_unit\":\"bytes/s\"},\"was\":");
  EXPECT_EQ(refusal([&] { KnownNetwork::from_json(other, "plan"); }), "plan: its form has 2 hosts, not 16");
}

}  // namespace
}  // namespace shoal::collective
