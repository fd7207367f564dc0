// Members die and others come in their places, or beside them, group after group: every increment counts once, whoever was lost or came
// when, and bulk-synchronous workers end with the bits of a run that nobody disturbed. SHOAL_SEEDS widens the search, SHOAL_FIRST_SEED begins it elsewhere.
#include "tests/from_environment.h"
#include "tests/table/kept_groups.h"

namespace shoal::table {
namespace {

template <class T>
typename Groups<T>::Options drawn(std::uint64_t seed, const Consistency& consistency) {
  std::mt19937_64 draw(seed);
  typename Groups<T>::Options options;
  options.consistency = consistency;
  options.seed = seed;
  options.members = static_cast<net::Rank>(2 + draw() % 4);
  options.workers_a_member = static_cast<std::uint32_t>(1 + draw() % 3 / 2);
  options.uneven = draw() % 2 == 0;
  if (options.members > 2 && draw() % 4 == 0) options.servers = {0, options.members - 1};
  if (draw() % 3 == 0) options.rate = 1e5;         // who dies has not sent all that it said
  for (std::uint64_t group = 0, groups = 1 + draw() % 3; group < groups; ++group) {
    auto& losses = options.losses.emplace_back();
    const std::uint64_t longest = draw() % 4 == 0 ? 1'000 : 25'000;
    for (std::uint64_t left = 1 + draw() % 2; left > 0; --left) {
      losses.push_back({static_cast<net::Rank>(draw() % options.members), std::chrono::microseconds(draw() % longest)});
    }
  }
  return options;
}

const std::vector<Consistency> kAllKept{Bsp{}, Ssp{0}, Ssp{2}, Essp{0}, Essp{2}, Dssp{0, 3}};

// The counts of one process that does all workers' clocks.
TEST(Kept, every_increment_counts_once_whoever_is_replaced) {
  int losses = 0, began_late = 0, runs = 0;
  for (const std::uint64_t seed : seeds(500)) {
    const Consistency& consistency = drawn_from(kAllKept, seed);
    SCOPED_TRACE(name(consistency) + ", seed " + std::to_string(seed));
    Groups<std::int64_t> groups(drawn<std::int64_t>(seed, consistency));
    groups.run();
    losses += groups.losses();
    began_late += groups.began_late();
    ++runs;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(losses, runs) << "few were lost";
  EXPECT_GT(began_late, runs / 2) << "few began in the middle";
}

// The same where members come beside those that there are, as the run goes on: of who came, what it added from the clock in which it came.
TEST(Kept, every_increment_counts_once_whoever_joins) {
  int joined = 0, lost = 0;
  for (const std::uint64_t seed : seeds(500)) {
    const Consistency& consistency = drawn_from(kAllKept, seed);
    SCOPED_TRACE(name(consistency) + ", seed " + std::to_string(seed));
    auto options = drawn<std::int64_t>(seed, consistency);
    std::mt19937_64 draw(seed + 1'000'000);
    options.parts = static_cast<std::uint32_t>(1 + draw() % 2);
    if (draw() % 2 == 0) options.losses.clear();
    for (std::uint64_t left = 1 + draw() % 3; left > 0; --left) {
      options.joins.push_back({static_cast<net::Rank>(1 + draw() % 2), std::chrono::microseconds(draw() % (draw() % 4 == 0 ? 1'000 : 15'000))});
    }
    Groups<std::int64_t> groups(options);
    groups.run();
    joined += groups.members() > options.members;
    lost += groups.losses() > 0;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(joined, 10) << "few have joined";
  EXPECT_GT(lost, 2) << "few were lost as well";
}

// Who joins is given as much as others hold, of rows that stay in their shards, where it may serve.
TEST(Kept, who_joins_comes_to_hold_rows) {
  using Loads = std::vector<std::size_t>;
  const auto loads = [](std::uint32_t parts, std::vector<net::Rank> servers, std::vector<Join> joins) {
    Groups<std::int64_t> groups({.members = 2, .servers = std::move(servers), .parts = parts, .joins = std::move(joins)});
    groups.run();
    return groups.loads();
  };
  using namespace std::chrono_literals;
  EXPECT_EQ(loads(2, {}, {{2, 3ms}}), (Loads{2, 2, 2, 2}));
  EXPECT_EQ(loads(1, {}, {{2, 1ms}}), (Loads{1, 1, 1, 1}));
  EXPECT_EQ(loads(3, {}, {{1, 3ms}}), (Loads{4, 4, 4}));
  EXPECT_EQ(loads(3, {}, {{1, 2ms}, {1, 2ms}}), (Loads{3, 3, 3, 3}));
  EXPECT_EQ(loads(2, {0, 1}, {{2, 1ms}}), (Loads{4, 4, 0, 0}));
}

// Sums that round, by a rule with a state: the bits say whether anything was done twice, left out or done in another order.
TEST(Kept, bulk_synchronous_workers_leave_no_trace_of_losses) {
  for (const std::uint64_t seed : seeds(60)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto options = drawn<double>(seed, Bsp{});
    if (seed % 2 == 0) options.rule = Rule::adagrad(0.5);
    const auto disturbed = Groups<double>(options).run();
    options.losses.clear();
    EXPECT_EQ(disturbed, Groups<double>(options).run());
  }
}

}  // namespace
}  // namespace shoal::table
