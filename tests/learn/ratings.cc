// Goal: members that read the same files agree on everything that is common, and together have every rating once.
#include "shoal/learn/ratings.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <tuple>

#include "shoal/core/error.h"
#include "shoal/learn/order.h"

namespace shoal::learn {
namespace {
namespace fs = std::filesystem;
using Named = std::multiset<std::tuple<std::string, std::string, float>>;

class RatingFiles : public testing::Test {
 protected:
  RatingFiles() { fs::create_directories(folder_); }
  ~RatingFiles() override { fs::remove_all(folder_); }
  fs::path file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  const fs::path folder_ = fs::temp_directory_path() / ("shoal-ratings-" + std::to_string(::getpid()));
};

Named named(const Ratings& ratings, const data::TripleStore& store) {
  const data::TripleSlice triples = store.all();
  Named all;
  for (std::size_t i = 0; i < triples.size(); ++i) {
    const std::uint32_t user = triples.rows[i] * ratings.members + ratings.member;
    EXPECT_LT(triples.rows[i], ratings.own_users());
    all.emplace(ratings.user_names[user], ratings.item_names[triples.columns[i]], triples.values[i]);
  }
  return all;
}

std::string five_hundred() {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "u" + std::to_string(i * 7 % 41) + ",i" + std::to_string(i * 11 % 60) + "," + std::to_string(i % 5 + 1) + "\n";
  return text;
}

TEST_F(RatingFiles, shares_together_are_the_whole_and_the_rest_is_alike) {
  const Source source{.files = {file("r.csv", five_hundred())}, .test_files = {}, .test_share = 0.2};
  const Ratings whole = read_ratings(source);
  EXPECT_EQ(whole.count + whole.held_out, 500u);
  EXPECT_NEAR(static_cast<double>(whole.held_out), 100, 45);
  for (const std::uint32_t members : {2u, 3u, 50u}) {
    Named learnt, held_out;
    std::uint32_t users = 0;
    std::size_t most = 0;
    for (std::uint32_t member = 0; member < members; ++member) {
      const Ratings share = read_ratings(source, member, members);
      learnt.merge(named(share, share.own));
      held_out.merge(named(share, share.own_held_out));
      users += share.own_users();
      most = std::max(most, share.own.size());
      EXPECT_EQ(share.mean, whole.mean);
      EXPECT_EQ(share.digest, whole.digest);
      EXPECT_EQ(share.count, whole.count);
      EXPECT_EQ(share.users, 41u);
      EXPECT_EQ(share.items, 60u);
    }
    EXPECT_EQ(learnt, named(whole, whole.own));
    EXPECT_EQ(held_out, named(whole, whole.own_held_out));
    EXPECT_EQ(users, 41u);
    EXPECT_EQ(read_ratings(source, 0, members).most, most);
  }
}

TEST_F(RatingFiles, on_disk_they_are_the_same) {
  Source source{.files = {file("r.csv", five_hundred())}, .test_files = {}, .test_share = 0.2};
  const Ratings memory = read_ratings(source, 1, 2);
  source.rows_in = folder_;
  const Ratings disk = read_ratings(source, 1, 2);
  EXPECT_TRUE(disk.own.on_disk());
  EXPECT_FALSE(memory.own.on_disk());
  EXPECT_EQ(disk.digest, memory.digest);
  for (const auto& [one, other] : {std::pair(&disk.own, &memory.own), std::pair(&disk.own_held_out, &memory.own_held_out)}) {
    EXPECT_TRUE(std::ranges::equal(one->all().rows, other->all().rows));
    EXPECT_TRUE(std::ranges::equal(one->all().columns, other->all().columns));
    EXPECT_TRUE(std::ranges::equal(one->all().values, other->all().values));
  }
  source.rows_in = folder_ / "nowhere";
  EXPECT_THROW(read_ratings(source), Error);
}

// Goal: each sample once an epoch, whatever the pieces, a disk read block by block, members and epochs apart.
TEST(Order, has_each_sample_once_and_those_on_disk_by_blocks) {
  constexpr std::uint32_t count = 40'000;
  for (const bool on_disk : {false, true}) {
    Order order(count, 1, 1, 0, on_disk), whole(count, 1, 1, 0, on_disk);
    std::vector<std::uint32_t> pieces;
    for (std::size_t size = 1; pieces.size() < count; size = size * 3 + 1) {
      const auto piece = order.take(std::min<std::size_t>(size, count - pieces.size()));
      pieces.insert(pieces.end(), piece.begin(), piece.end());
    }
    const auto all = whole.take(count);
    EXPECT_TRUE(std::ranges::equal(pieces, all));
    std::vector<int> seen(count);
    std::size_t changes = 0;  // from one block to another
    for (std::size_t i = 0; i < count; ++i) {
      ++seen[all[i]];
      changes += i > 0 && all[i] >> 14 != all[i - 1] >> 14;
    }
    EXPECT_THAT(seen, testing::Each(1));
    EXPECT_EQ(changes == 2, on_disk) << changes;
    EXPECT_FALSE(std::ranges::equal(all, Order(count, 1, 2, 0, on_disk).take(count)));
    EXPECT_FALSE(std::ranges::equal(all, Order(count, 1, 1, 1, on_disk).take(count)));
  }
  EXPECT_TRUE(Order(0, 1, 1, 0, true).take(0).empty());
}

TEST_F(RatingFiles, a_test_file_is_what_is_held_out) {
  const Source source{.files = {file("r.csv", "a,x,1\nb,y,3\n")}, .test_files = {file("t.csv", "a,y,2\nc,x,9\n")}};
  const Ratings ratings = read_ratings(source);
  EXPECT_EQ(ratings.count, 2u);
  EXPECT_EQ(ratings.mean, 2);
  EXPECT_EQ(named(ratings, ratings.own_held_out), (Named{{"a", "y", 2.0f}, {"c", "x", 9.0f}}));
  EXPECT_EQ(ratings.users, 3u) << "c has a row, which nobody learns";
}

TEST_F(RatingFiles, a_matrix_has_numbers_for_names) {
  const Ratings ratings = read_ratings({.files = {file("m.mtx", "%%MatrixMarket matrix coordinate real general\n3 4 2\n1 4 2.5\n3 1 0.5\n")}, .test_files = {}, .test_share = 0});
  EXPECT_EQ(ratings.users, 3u);
  EXPECT_EQ(ratings.items, 4u);
  EXPECT_EQ(ratings.user_names.size(), 0u);
  EXPECT_EQ(ratings.mean, 1.5);
}

TEST_F(RatingFiles, mistakes_are_one_line) {
  const auto refusal = [&](const Source& source) {
    try {
      read_ratings(source);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return std::string(error.what()).substr(folder_.string().size() + 1);
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal({.files = {file("r.csv", "a,x,1\nb,y,2\nc,z,three\nd,v,4\n")}, .test_files = {}}), "r.csv:3: 'three' is no number (the third field is the value)");
  EXPECT_EQ(refusal({.files = {file("m.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n")}, .test_files = {file("t.csv", "a,y,2\n")}}),
            "t.csv: has rows and columns by number, or by name, where the ratings to learn from have the other (both are matrices, or both are triples)");
}

}  // namespace
}  // namespace shoal::learn
