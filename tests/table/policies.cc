// What one policy does and others do not, on the scripted network.
#include "shoal/table/consistency.h"

#include "tests/table/scripted_workers.h"

namespace shoal::table {
namespace {

// Two members, each with a worker; the first row is served by whoever owns it, and both have read it.
struct Two {
  explicit Two(const Consistency& consistency) : job(2) {
    for (net::Rank rank = 0; rank < 2; ++rank) tables.push_back(std::make_unique<Tables>(job.member(rank)));
    for (net::Rank rank = 0; rank < 2; ++rank) {
      rows.push_back(tables[rank]->worker().open<std::int64_t>({.name = "rows", .consistency = consistency}));
      read(rank);
    }
  }
  std::int64_t read(net::Rank rank) {
    std::int64_t value = 0;
    rows[rank].read(key, std::span(&value, 1));
    return value;
  }
  void add(net::Rank rank, std::int64_t value) { rows[rank].add(key, std::span(&value, 1)); }

  ~Two() { tables.clear(); }

  net::InprocJob job;
  const std::vector<Key> key{1};
  std::vector<std::unique_ptr<Tables>> tables;
  std::vector<Table<std::int64_t>> rows;
};

// Goal: what is added in a clock that is not complete is seen by others under cap, and not under essp.
TEST(Cap, part_of_a_clock_is_seen_before_its_tick) {
  for (const auto& [consistency, seen] : {std::pair(Consistency(Cap{2}), 12), std::pair(Consistency(Essp{2}), 0)}) {
    Two two(consistency);
    two.add(0, 5);
    two.add(0, 7);
    EXPECT_EQ(two.read(0), 12);
    two.job.run();
    EXPECT_EQ(two.read(1), seen) << name(consistency);
    EXPECT_EQ(two.read(0), 12);
    EXPECT_EQ(two.rows[0].clock(), 0);
  }
}

}  // namespace
}  // namespace shoal::table
