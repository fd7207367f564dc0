// Rows of a slice, and what was done to them as bytes: whoever applies these has the same rows; what cannot be is refused.
#include "shoal/learn/topic/slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"
#include "shoal/learn/topic/slice_changes.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint32_t kRowsOfSlice = 40;
constexpr Topic kTopicsOfSlice = 300;

std::vector<TopicCount> ascending(std::span<const TopicCount> row) {
  std::vector<TopicCount> sorted(row.begin(), row.end());
  std::ranges::sort(sorted, {}, &TopicCount::topic);
  return sorted;
}

void expect_same_rows(const Slice& one, const Slice& other) {
  ASSERT_EQ(one.words(), other.words());
  for (std::uint32_t place = 0; place < one.words(); ++place) EXPECT_EQ(ascending(one.row(place)), ascending(other.row(place))) << "word " << place;
}

// Rows with up to `most` topics each, in no order; `share` of the rows of `from` are others.
Slice random_slice(std::uint64_t seed, std::uint32_t most, const Slice* from = nullptr, double share = 1) {
  Slice slice(kRowsOfSlice);
  for (std::uint32_t place = 0; place < kRowsOfSlice; ++place) {
    if (from != nullptr && uniform(seed, place, 0, 0) >= share) {
      const std::vector<TopicCount> row(from->row(place).rbegin(), from->row(place).rend());  // the same counts in another order
      slice.store(place, row);
      continue;
    }
    std::map<Topic, std::uint32_t> counts;
    for (std::uint32_t i = random_words(seed, place, 0, 1)[0] % (most + 1); i > 0; --i)
      counts[random_words(seed, place, i, 2)[0] % kTopicsOfSlice] = 1 + random_words(seed, place, i, 3)[0] % 1000;
    std::vector<TopicCount> row;
    for (const auto& [topic, count] : counts) row.push_back({topic, count});
    std::ranges::sort(row, {}, [&](const TopicCount& pair) { return random_words(seed, place, pair.topic, 4)[0]; });
    slice.store(place, row);
  }
  return slice;
}

TEST(Slice, ChangesMakeOneOfTheOther) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Slice before = random_slice(seed, 30), now = random_slice(seed + 100, seed % 2 == 0 ? 30 : 3, &before, 0.3);
    std::size_t size = 0;
    for (const bool or_rows : {false, true}) {
      const Bytes changes = changes_between(before, now, or_rows);
      EXPECT_TRUE(!or_rows || changes.size() <= size);
      size = changes.size();
      Slice copy = before.compacted();
      apply(changes, kTopicsOfSlice, copy);
      expect_same_rows(copy, now);
    }
    Slice same = before.compacted();
    const Bytes none = changes_between(before, random_slice(seed, 30, &before, 0), true);
    EXPECT_EQ(none.size(), 1u);
    apply(none, kTopicsOfSlice, same);
    expect_same_rows(same, before);
  }
}

// Two who change the same rows at once: changes of both are in both copies, in any order.
TEST(Slice, ChangesOfSeveralAddUp) {
  Slice before(1), one(1), other(1), both(1);
  const auto store = [](Slice& slice, std::vector<TopicCount> row) { slice.store(0, row); };
  store(before, {{2, 5}, {7, 3}});
  store(one, {{2, 4}, {7, 3}, {9, 1}});
  store(other, {{7, 3}, {2, 3}, {9, 2}});
  store(both, {{2, 2}, {7, 3}, {9, 3}});
  const Bytes of_one = changes_between(before, one, false), of_other = changes_between(before, other, false);
  apply(of_other, 10, one);
  expect_same_rows(one, both);
  apply(of_one, 10, other);
  expect_same_rows(other, both);
}

// Rows that became short are told as they are, long ones by what changed in them.
TEST(Slice, TheShorterFormIsTold) {
  std::vector<TopicCount> row(200);
  for (Topic topic = 0; topic < row.size(); ++topic) row[topic] = {topic, 1};
  Slice long_row(1), one_more(1), short_row(1);
  long_row.store(0, row);
  ++row[50].count;
  one_more.store(0, row);
  short_row.store(0, std::vector<TopicCount>{{3, 201}});
  EXPECT_LT(changes_between(long_row, one_more, true).size(), 8u);
  EXPECT_GT(changes_between(long_row, short_row, false).size(), 400u);
  EXPECT_LT(changes_between(long_row, short_row, true).size(), 10u);
}

TEST(Slice, ChangesThatCannotBeAreRefused) {
  Slice before(2), now(2);
  before.store(1, std::vector<TopicCount>{{2, 5}});
  now.store(1, std::vector<TopicCount>{{2, 1}, {9, 4}});
  const Bytes good = changes_between(before, now, false);
  const auto refused = [](std::span<const std::byte> bytes, Topic topics, Slice to) {
    try {
      apply(bytes, topics, to);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::mismatch);
      return true;
    }
    return false;
  };
  const std::span<const std::byte> bytes(good.data(), good.size());
  EXPECT_FALSE(refused(bytes, 10, before.compacted()));
  EXPECT_TRUE(refused(bytes, 9, before.compacted()));           // topics beyond what there are
  EXPECT_TRUE(refused(bytes, 10, Slice(1)));                    // of another slice
  EXPECT_TRUE(refused(bytes, 10, Slice(2)));                    // tokens that are not there
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_TRUE(size == 1 || refused(bytes.first(size), 10, before.compacted())) << size;
  // Whatever comes is either something or refused.
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    std::vector<std::byte> noise(random_words(seed, 0, 0, 0)[0] % 12);
    for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::byte>(random_words(seed, i, 0, 1)[0] % (i % 2 == 0 ? 4 : 256));
    refused(noise, 10, before.compacted());
  }
}

// Rows of no topic and of one have no memory but what each row has; others room for a power of two. Oracle: rows as they were stored, whatever was there
// before.
TEST(Slice, RowsGrowAndShrinkThroughAllTheirSizes) {
  constexpr std::uint32_t kWords = 64;
  Slice slice(kWords);
  const std::size_t empty = slice.memory();
  std::vector<std::vector<TopicCount>> rows(kWords);
  const auto store = [&](std::uint64_t step, std::uint32_t most) {
    for (std::uint32_t place = 0; place < kWords; ++place) {
      rows[place].resize(random_words(step, place, 0, 5)[0] % (most + 1));
      for (std::uint32_t i = 0; i < rows[place].size(); ++i) rows[place][i] = {i * 7 + place, 1 + static_cast<std::uint32_t>(step)};
      slice.store(place, rows[place]);
    }
    for (std::uint32_t place = 0; place < kWords; ++place) ASSERT_TRUE(std::ranges::equal(slice.row(place), rows[place])) << step << ", word " << place;
  };
  for (std::uint64_t step = 0; step < 20; ++step) store(step, 1);
  EXPECT_EQ(slice.memory(), empty);
  std::uint32_t step = 100;
  for (const std::uint32_t most : {2u, 1u, 3u, 40u, 1u, 2u, 9u, 0u, 5u, 1u}) {
    for (int i = 0; i < 5; ++i) store(step++, most);
    const Slice compact = slice.compacted();
    std::size_t needed = empty;
    for (std::uint32_t place = 0; place < kWords; ++place) {
      EXPECT_TRUE(std::ranges::equal(compact.row(place), rows[place]));
      if (rows[place].size() > 1) needed += std::bit_ceil(rows[place].size()) * sizeof(TopicCount);
    }
    EXPECT_EQ(compact.memory(), needed) << "rows of up to " << most;
  }
}

// Rows that were long keep no room for ever.
TEST(Slice, CompactedHasTheSameRowsInLessMemory) {
  Slice slice = random_slice(1, 250);
  EXPECT_FALSE(slice.is_wasteful());
  const Slice other = random_slice(2, 3);
  for (std::uint32_t place = 0; place < slice.words(); ++place) slice.store(place, other.row(place));
  ASSERT_TRUE(slice.is_wasteful());
  const Slice compact = slice.compacted();
  EXPECT_FALSE(compact.is_wasteful());
  EXPECT_LT(compact.memory(), slice.memory() / 4);
  for (std::uint32_t place = 0; place < slice.words(); ++place) EXPECT_TRUE(std::ranges::equal(compact.row(place), slice.row(place)));
}

}  // namespace
}  // namespace shoal::learn::topic
