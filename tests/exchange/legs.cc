// Goal: the legs of a way are what its flows send, member by member, to the byte. Method: one iteration of every way by several members in one process on a
// scripted network, of one tensor whose size is no multiple of anything. Oracle: what each member has handed to the transport.
#include "shoal/exchange/leg.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "shoal/core/event.h"
#include "shoal/exchange/plan_price.h"
#include "shoal/exchange/strips.h"
#include "tests/exchange/members.h"

namespace shoal::exchange {
namespace {

constexpr std::uint64_t kLegOutputs = 253, kLegInputs = 307, kLegRows = 20;

ExchangePlan plan_of_legs(const std::string& way, std::uint32_t ranks) {
  ExchangePlan plan;
  plan.ranks = ranks;
  plan.tensors = {{.name = "weight",
                   .count = kLegOutputs * kLegInputs,
                   .rows = kLegRows,
                   .outputs = kLegOutputs,
                   .width = kLegInputs,
                   .touched = kLegRows}};
  plan.units = {{{0}, way, 16384, 0, 0, 0}};
  return plan;
}

using PerMember = std::vector<std::uint64_t>;  // bytes, the least first: events do not say whose they are
PerMember sorted(PerMember sent) {
  std::ranges::sort(sent);
  return sent;
}

PerMember by_its_legs(const ExchangePlan& plan, std::optional<Leg::When> only = std::nullopt) {
  PerMember sent(plan.ranks);
  const auto way = way_named(plan.units[0].way);
  for (const Leg& leg : way->legs(load_of(plan, plan.units[0]))) {
    if (only && leg.when != *only) continue;
    const auto program = program_of(leg, plan.ranks, nullptr);
    for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
      sent[leg.members.empty() ? rank : leg.members[rank]] +=
          elements_sent(program, layout_of(leg, program, rank), rank) * leg.element_bytes;
    }
  }
  return sorted(sent);
}

// Members from `workers` on have nothing. An owner's two halves are two events, the other's bytes in the second.
PerMember really_sent_by(const ExchangePlan& plan, std::uint32_t workers) {
  Members members(plan);
  std::vector<float> values(kLegOutputs * kLegInputs), inputs(kLegRows * kLegInputs, 1), outputs(kLegRows * kLegOutputs, 1);
  std::fill_n(values.begin(), kLegRows * kLegInputs, 1.0F);
  const auto bytes = [](const std::vector<float>& of) { return reinterpret_cast<const std::byte*>(of.data()); };
  Events::local().drain();
  Events::local().enable(true);
  const std::string& way = plan.units[0].way;
  for (std::uint32_t r = 0; r < plan.ranks; ++r) {
    members[r].begin(r < workers);
    if (r >= workers) {
      members[r].absent(0);
    } else if (way == kByFactors) {
      members[r].produced(0, factor::Pair{kLegRows, bytes(inputs), bytes(outputs), nullptr});
    } else if (way.starts_with(kHybrid)) {
      members[r].produced(0, Strip{bytes(values), nullptr});
    } else {
      members[r].produced(0, values.data());
    }
  }
  for (std::uint32_t r = 0; r < plan.ranks; ++r) members[r].commit();
  Events::local().enable(false);
  PerMember sent;
  for (const auto& event : Events::local().drain()) {
    if (event.kind == EventKind::exchange) sent.push_back(static_cast<std::uint64_t>(event.value));
  }
  return sorted(sent);
}

TEST(Legs, are_what_every_member_sends) {
  for (const std::uint32_t ranks : {2u, 3u, 4u, 5u}) {
    for (const std::string way : {"direct", "ring", "chain", "halving_doubling", "gather", "factors", "rows", "bf16", "int8",
                                  "topk:0.01", "powersgd:2"}) {
      const auto plan = plan_of_legs(way, ranks);
      EXPECT_EQ(by_its_legs(plan), really_sent_by(plan, ranks)) << way << " among " << ranks;
    }
  }
}

TEST(Legs, of_servers_and_beside_servers_are_what_every_member_sends) {
  for (const auto& [workers, servers] : {std::pair{3u, 1u}, {3u, 2u}, {2u, 2u}}) {
    for (const std::string& way : {served_by(servers), std::string("ring"), std::string("direct")}) {
      auto plan = plan_of_legs(way, workers + servers);
      plan.servers = servers;
      EXPECT_EQ(by_its_legs(plan), really_sent_by(plan, workers)) << way << " of " << workers << " and " << servers;
    }
  }
}

// Beside the strip each member says in a byte whether it has a gradient that no row explains.
TEST(Legs, of_strips_are_what_every_member_sends) {
  for (const auto& [ranks, groups] : {std::pair{4u, 2u}, {6u, 2u}, {6u, 3u}}) {
    const auto plan = plan_of_legs(kHybrid + std::to_string(groups), ranks);
    PerMember legs = by_its_legs(plan, Leg::When::mean);
    for (auto& sent : legs) sent += ranks - 1;
    EXPECT_EQ(legs, really_sent_by(plan, ranks)) << groups << " groups of " << ranks;
  }
}

// What a layer is given is data: no gradient of it goes back.
TEST(Legs, of_a_layer_that_takes_data_give_no_gradient_back) {
  auto plan = plan_of_legs(kHybrid + std::to_string(2), 4);
  const auto given_back = [&] {
    std::uint64_t bytes = 0;
    for (const Leg& leg : way_named(plan.units[0].way)->legs(load_of(plan, plan.units[0]))) {
      if (leg.collective == collective::Collective::reduce_scatter) bytes += leg.elements * leg.element_bytes;
    }
    return bytes;
  };
  EXPECT_EQ(given_back(), 2 * 2 * kLegRows * kLegInputs * sizeof(float));
  plan.tensors[0].takes_data = true;
  EXPECT_EQ(given_back(), 0u);
}

// docs/ways.md: (N-1)/N of the tensor to the owners, and as much back.
TEST(Legs, of_owners_go_there_and_back) {
  const auto plan = plan_of_legs("owners", 4);
  EXPECT_EQ(by_its_legs(plan, Leg::When::mean), really_sent_by(plan, 4));
  const PerMember back = by_its_legs(plan, Leg::When::after);
  std::uint64_t all = 0;
  for (const auto sent : back) all += sent;
  EXPECT_EQ(all, 3 * kLegOutputs * kLegInputs * sizeof(float));
}

}  // namespace
}  // namespace shoal::exchange
