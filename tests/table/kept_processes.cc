// Members that are processes count over real sockets; one after the other is killed, in the middle of a clock and as it comes, rank 0 and newcomers too,
// and another process takes its place from the clock that all had completed: every increment counts once.
#include <numeric>

#include "shoal/net/call.h"
#include "shoal/table/tables.h"
#include "tests/net/forked.h"

namespace shoal::table {
namespace {

using net::Forked;
using net::Rank;

constexpr Rank kMembers = 3;
constexpr Clock kClocks = 20;
constexpr Key kProcessKeys = 40;

// Who ends in each group: when it has added something in that clock, and has not ticked; or before it opens the table.
struct Kill {
  Rank rank;
  std::optional<Clock> at{};
};
const std::vector<Kill> kKills{{1, 4}, {1, {}}, {0, 9}, {2, 15}};

std::int64_t amount(Rank rank, Clock clock, Key key) { return static_cast<std::int64_t>(spread(spread(rank * 1000 + static_cast<Key>(clock)) + key) % 7); }

// All of the program, from where the table stands. Throws Error{peer_lost}.
std::string count(net::Transport& transport, Tables& tables, Rank rank, std::size_t group) {
  const auto ends = [&](std::optional<Clock> at) { return group < kKills.size() && kKills[group].rank == rank && kKills[group].at == at; };
  if (ends({})) kill(getpid(), SIGKILL);
  auto table = tables.worker().open<std::int64_t>({.name = "counts", .consistency = Essp{2}});
  const Clock begun = table.clock();
  std::vector<Key> keys(kProcessKeys);
  std::iota(keys.begin(), keys.end(), Key{0});
  std::vector<std::int64_t> values(kProcessKeys);
  while (table.clock() < kClocks) {
    table.read(keys, values);
    for (const Key key : keys) values[key] = amount(rank, table.clock(), key);
    table.add(keys, values);
    if (ends(table.clock())) {
      const auto two_have_it = [&] { return std::ranges::all_of(table.holders(), [](const auto& of_shard) { return of_shard.size() == 2; }); };
      if (!net::wait_for(transport, two_have_it, std::chrono::seconds(20))) return "WRONG, some rows have one holder";
      kill(getpid(), SIGKILL);
    }
    table.tick();
  }
  table.barrier();
  table.read(keys, values);
  for (const Key key : keys) {
    for (Rank by = 0; by < kMembers; ++by) {
      for (Clock clock = 0; clock < kClocks; ++clock) values[key] -= amount(by, clock, key);
    }
  }
  tables.leave();
  const bool exact = std::ranges::all_of(values, [](std::int64_t rest) { return rest == 0; });
  return (exact ? "exact, begun at " : "WRONG, begun at ") + std::to_string(begun);
}

std::string join_and_count(const std::string& address, Rank rank, std::size_t group) {
  net::JoinOptions options = net::quick();
  options.on_peer_lost = net::OnPeerLost::rejoin;
  options.takes_over = true;
  net::Place place = net::place_of(rank, kMembers);
  place.launcher = net::Place::Launcher::shoal;
  std::unique_ptr<net::Job> job;
  std::unique_ptr<Tables> tables;
  for (;; ++group) {
    net::CoordinatorClient client("secret", address, std::chrono::seconds(20));
    auto next_job = net::join_tcp(place, client, "group-" + std::to_string(group) + "/", "secret", options);
    tables = std::make_unique<Tables>(next_job->transport(), TablesOptions{}, tables.get());
    job = std::move(next_job);
    try {
      return count(job->transport(), *tables, rank, group);
    } catch (const Error& error) {
      if (error.code() != Code::peer_lost) throw;
    }
  }
}

TEST(KeptProcesses, every_increment_counts_once_whoever_is_killed) {
  const Forked coordinator([](const Forked& test) {
    const net::Coordinator open("secret", "127.0.0.1:0");
    test.say(open.address());
    test.line();
  });
  const std::string address = coordinator.line();
  const auto member = [&](Rank rank, std::size_t group) {
    return std::make_unique<Forked>([&, rank, group](const Forked& test) {
      try {
        test.say(join_and_count(address, rank, group));
      } catch (const Error& error) {
        test.say(std::string("threw ") + error.what());
      }
    });
  };
  std::vector<std::unique_ptr<Forked>> members;
  for (Rank rank = 0; rank < kMembers; ++rank) members.push_back(member(rank, 0));
  for (std::size_t group = 0; group < kKills.size(); ++group) {
    const Rank rank = kKills[group].rank;
    ASSERT_EQ(members[rank]->line(), "") << "it was to be killed in group " << group;
    members[rank] = member(rank, group + 1);
  }
  std::vector<std::string> said;
  for (const auto& one : members) said.push_back(one->line());
  EXPECT_TRUE(said[0].starts_with("exact, begun at 1")) << said[0];  // at least 15 less the two clocks of staleness and the one that may be told of late
  EXPECT_EQ(said, std::vector<std::string>(kMembers, said[0]));
}

}  // namespace
}  // namespace shoal::table
