// Members on a scripted network that add together, operation after operation, while faults strike. What must hold of every operation: all
// survivors have the sum over the same contributors, exactly, with the same bits; or all have an error, and their inputs as they were.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "shoal/collective/hosts.h"
#include "shoal/collective/surviving_group.h"
#include "shoal/net/inproc.h"

namespace shoal::collective {

// One that has the named program: a slow member for trees, two members a host for "hierarchical"; none for builders.
inline const LinkModel& link_for(const std::string& builder, net::Rank members) {
  static std::map<std::pair<std::string, net::Rank>, LinkModel> made;
  if (const auto known = made.find({builder, members}); known != made.end()) return known->second;
  LinkModel& link = made[{builder, members}];
  topo::Topology topology;
  if (builder == kTrees) {
    topology.name = "the last one is slow";
    topology.switches = {"s"};
    for (topo::Node host = 0; host < members; ++host) topology.hosts.push_back("h" + std::to_string(host));
    for (topo::Node host = 0; host < members; ++host) topology.link_both_ways(host, members, host + 1 == members ? 25e6 : 125e6);
    link.network = KnownNetwork::made_for(topology);
  }
  if (builder == kHierarchical) {
    Hosts hosts(members);
    for (net::Rank rank = 0; rank < members; ++rank) hosts[rank] = rank / 2;
    link.network = KnownNetwork::without_trees(network_of(hosts, 1e9, 25e6));
  }
  return link;
}

struct SurvivingScript {
  net::Rank members = 4;
  std::string builder = "direct";
  std::uint64_t count = 300;           // int32 elements
  int operations = 3;
  bool in_place = false;
  std::uint64_t seed = 1;
  Nanoseconds patience = std::chrono::seconds(30);
  Nanoseconds pause{};                 // between a member's operations, longer for higher ranks
};

class SurvivingMembers {
 public:
  static constexpr std::uint16_t kChannel = 7;

  explicit SurvivingMembers(const SurvivingScript& script)
      : script_(script), job(script.members, {.seed = script.seed, .on_peer_lost = net::OnPeerLost::shrink, .eager = 1024}), told_(script.members) {
    std::vector<net::Rank> all(script.members);
    std::iota(all.begin(), all.end(), net::Rank{0});
    const LinkModel& link = link_for(script.builder, script.members);
    for (net::Rank rank = 0; rank < script.members; ++rank) {
      groups_.push_back(std::make_unique<SurvivingGroup>(job.member(rank), all, kChannel, SurvivingGroup::Options{script.builder, link}));
      told_[rank].reserve(static_cast<std::size_t>(script.operations));
      job.member(rank).post([this, rank] { next(rank); });
    }
  }

  static std::int32_t value(net::Rank rank, int operation, std::uint64_t k) {
    return static_cast<std::int32_t>((1u << rank) * 1000u + static_cast<std::uint32_t>(operation) * 17u + k % 7);
  }

  struct Told {
    std::vector<std::int32_t> input, output;
    int times = 0;
    net::Failure why;
    std::vector<Contributor> contributors;
    Instant began{}, ended{};
  };

  ~SurvivingMembers() {
    closing_ = true;
    groups_.clear();
  }

  // A member that nothing is to be expected of any more.
  void count_out(net::Rank rank) { out_.insert(rank); }
  bool survives(net::Rank rank) const { return !out_.contains(rank) && !job.member(rank).failure(); }
  const std::vector<Told>& told(net::Rank rank) const { return told_[rank]; }
  std::vector<net::Rank> group_of(net::Rank rank) const { return groups_[rank]->members(); }

  void run() { ASSERT_TRUE(job.run()); }

  // Counts what was committed without some member, and what failed.
  void expect_all_or_nothing() {
    std::vector<net::Rank> survivors;
    for (net::Rank rank = 0; rank < script_.members; ++rank) {
      if (survives(rank)) survivors.push_back(rank);
    }
    ASSERT_FALSE(survivors.empty());
    for (int operation = 0; operation < script_.operations; ++operation) {
      SCOPED_TRACE("operation " + std::to_string(operation));
      const auto o = static_cast<std::size_t>(operation);
      const Told* first = nullptr;
      for (const net::Rank rank : survivors) {
        SCOPED_TRACE("rank " + std::to_string(rank));
        ASSERT_EQ(told_[rank].size(), static_cast<std::size_t>(script_.operations)) << "it stands still";
        const Told& told = told_[rank][o];
        ASSERT_EQ(told.times, 1);
        if (!first) first = &told;
        // Silence is found after 5 s and told for 1 s; faults lie within the first.
        EXPECT_LE(told.ended - told.began, std::max<Nanoseconds>(script_.patience, std::chrono::seconds(6)) + std::chrono::milliseconds(500));
        ASSERT_EQ(told.why != nullptr, first->why != nullptr) << (told.why ? told.why->what() : "the first failed");
        if (told.why) {
          if (!script_.in_place) continue;
          for (std::uint64_t k = 0; k < script_.count; ++k) ASSERT_EQ(told.output[k], value(rank, operation, k)) << "the input was written";
          continue;
        }
        expect_sum(told, operation, survivors);
        ASSERT_EQ(told.contributors.size(), first->contributors.size());
        for (std::size_t i = 0; i < told.contributors.size(); ++i) ASSERT_EQ(told.contributors[i].rank, first->contributors[i].rank);
        ASSERT_TRUE(told.output == first->output);
      }
      failed_ += first->why != nullptr;
      shrunk_ += !first->why && first->contributors.size() < script_.members;
    }
  }
  int failed() const { return failed_; }
  int shrunk() const { return shrunk_; }

 private:
  const SurvivingScript script_;

 public:
  mutable net::InprocJob job;

 private:
  void next(net::Rank rank) {
    const int operation = static_cast<int>(told_[rank].size());
    if (operation == script_.operations) return;
    Told& told = told_[rank].emplace_back();
    told.input.resize(script_.count);
    for (std::uint64_t k = 0; k < script_.count; ++k) told.input[k] = value(rank, operation, k);
    told.output = script_.in_place ? told.input : std::vector<std::int32_t>(script_.count, -1);
    told.began = job.now();
    Addition addition;
    addition.type = DType::i32;
    addition.count = script_.count;
    addition.buffers = {reinterpret_cast<const std::byte*>(script_.in_place ? told.output.data() : told.input.data()),
                        reinterpret_cast<std::byte*>(told.output.data())};
    addition.weight = rank + 1.0;
    addition.patience = script_.patience;
    addition.label = "sum " + std::to_string(operation);
    groups_[rank]->all_reduce(addition, [this, rank, &told](const net::Failure& why, const std::vector<Contributor>& contributors) {
      ++told.times;
      told.why = why;
      told.contributors = contributors;
      told.ended = job.now();
      if (closing_ || job.member(rank).failure()) return;
      if (script_.pause == Nanoseconds(0)) return next(rank);
      job.member(rank).at(job.now() + (rank + 1) * script_.pause, [this, rank] { next(rank); });
    });
  }

  void expect_sum(const Told& told, int operation, const std::vector<net::Rank>& survivors) {
    std::set<net::Rank> contributors;
    for (const Contributor& one : told.contributors) {
      EXPECT_EQ(one.weight, one.rank + 1.0);
      ASSERT_TRUE(contributors.insert(one.rank).second);
    }
    for (const net::Rank rank : survivors) ASSERT_TRUE(contributors.contains(rank)) << "rank " << rank << " lives and is left out";
    for (std::uint64_t k = 0; k < script_.count; ++k) {
      std::int32_t sum = 0;
      for (const net::Rank rank : contributors) sum += value(rank, operation, k);
      ASSERT_EQ(told.output[k], sum) << "element " << k;
    }
  }

  std::vector<std::unique_ptr<SurvivingGroup>> groups_;
  std::vector<std::vector<Told>> told_;
  std::set<net::Rank> out_;
  int failed_ = 0, shrunk_ = 0;
  bool closing_ = false;
};

}  // namespace shoal::collective
