// Goal: members that read the same files agree on classes, columns and who is held out, and together have every row once.
#include "shoal/learn/labelled_rows.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>

#include "shoal/core/error.h"
#include "shoal/learn/minibatch.h"

namespace shoal::learn {
namespace {
namespace fs = std::filesystem;

class RowFiles : public testing::Test {
 protected:
  RowFiles() { fs::create_directories(folder_); }
  ~RowFiles() override { fs::remove_all(folder_); }
  fs::path file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::string refusal(const Source& source) const {
    try {
      read_labelled_rows(source);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return std::string(error.what()).substr(folder_.string().size() + 1);
    }
    return "accepted";
  }
  const fs::path folder_ = fs::temp_directory_path() / ("shoal-rows-" + std::to_string(::getpid()));
};

TEST_F(RowFiles, shares_together_are_the_whole_and_the_rest_is_alike) {
  std::string text;
  for (int i = 1; i <= 300; ++i) text += std::to_string(i % 3 - 1) + " " + std::to_string(i) + ":" + std::to_string(i) + "\n";  // row i has i in column i - 1
  const Source source{.files = {file("s.txt", text)}, .test_files = {}, .test_share = 0.25};
  const LabelledRows whole = read_labelled_rows(source);
  EXPECT_EQ(whole.classes, (std::vector<double>{-1, 0, 1}));
  EXPECT_EQ(whole.columns, 300u);
  EXPECT_EQ(whole.count + whole.held_out, 300u);
  for (const std::uint32_t members : {1u, 2u, 7u}) {
    std::map<std::uint32_t, float> learnt;  // by number among the rows to learn from
    std::size_t held_out = 0;
    for (std::uint32_t member = 0; member < members; ++member) {
      const LabelledRows share = read_labelled_rows(source, member, members);
      EXPECT_EQ(share.digest, whole.digest);
      EXPECT_EQ(share.classes, whole.classes);
      EXPECT_EQ(share.first.values, whole.first.values);
      ASSERT_EQ(share.numbers.size(), share.own.size());
      for (std::size_t i = 0; i < share.own.size(); ++i) {
        EXPECT_TRUE(learnt.emplace(share.numbers[i], share.own[i].values[0]).second);
        EXPECT_EQ(share.own[i].label, static_cast<int>(share.own[i].values[0]) % 3) << "its place among the classes";
      }
      held_out += share.own_held_out.size();
    }
    ASSERT_EQ(learnt.size(), whole.count);
    for (std::uint32_t number = 0; number < whole.count; ++number) EXPECT_EQ(learnt.at(number), whole.own[number].values[0]);
    EXPECT_EQ(held_out, whole.held_out);
  }
}

TEST_F(RowFiles, rows_on_disk_are_the_same_and_their_order_is_of_blocks) {
  std::string text;
  for (int i = 1; i <= 40'000; ++i) text += std::to_string(i % 3) + " 1:" + std::to_string(i) + "\n";
  Source source{.files = {file("s.txt", text)}, .test_files = {}, .test_share = 0.25};
  const LabelledRows memory = read_labelled_rows(source, 1, 2);
  source.rows_in = folder_;
  const LabelledRows disk = read_labelled_rows(source, 1, 2);
  EXPECT_TRUE(disk.own.on_disk());
  EXPECT_EQ(disk.digest, memory.digest);
  EXPECT_EQ(disk.numbers, memory.numbers);
  for (const auto& [one, other] : {std::pair(&disk.own, &memory.own), std::pair(&disk.own_held_out, &memory.own_held_out)}) {
    ASSERT_EQ(one->size(), other->size());
    for (std::size_t i = 0; i < one->size(); ++i) {
      ASSERT_EQ((*one)[i].values[0], (*other)[i].values[0]);
      ASSERT_EQ((*one)[i].label, (*other)[i].label);
    }
  }
  // Each own row is in one minibatch of an epoch; one minibatch reaches over two blocks of 16,384 rows at most, and another epoch has another order.
  std::vector<int> seen(disk.own.size());
  const auto dealt = deal(disk, 100, 1, 1);
  for (const auto& minibatch : dealt) {
    std::set<std::uint32_t> blocks;
    for (const std::uint32_t own : minibatch) {
      ++seen[own];
      blocks.insert(disk.numbers[own] >> 14);
    }
    EXPECT_LE(blocks.size(), 2u);
  }
  EXPECT_THAT(seen, testing::Each(1));
  EXPECT_NE(dealt, deal(disk, 100, 1, 2));
}

TEST_F(RowFiles, mistakes_are_one_line) {
  EXPECT_EQ(refusal({.files = {file("a.txt", "1 1:1\n1 2:1\n")}, .test_files = {}, .test_share = 0}), "a.txt: all rows to learn from have one label (there is nothing to tell apart)");
  EXPECT_EQ(refusal({.files = {file("a.txt", "1 1:1\n2 2:1\n")}, .test_files = {file("t.txt", "3 1:1\n")}}),
            "a.txt: label 3.000000 is only on rows that are held out (nobody can learn it)");
  EXPECT_EQ(refusal({.files = {file("a.txt", "1 1:1\n2 1:x\n")}, .test_files = {}}).substr(0, 8), "a.txt:2:");
  std::string many;
  for (int i = 0; i <= 10'000; ++i) many += std::to_string(i) + ".5 1:1\n";
  EXPECT_EQ(refusal({.files = {file("r.txt", many)}, .test_files = {}, .test_share = 0}), "r.txt: has more than 10000 different labels (a label is a class here, not a value)");
}

}  // namespace
}  // namespace shoal::learn
