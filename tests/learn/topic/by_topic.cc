// Tables of documents by topic: which ones are laid out, that nothing is lost on the way there and back, and that draws from them are worth the same.
#include "shoal/learn/topic/by_topic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/learn/topic/alone.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint32_t kLaidTopics = 1000, kLaidWords = 60;

// Of two documents, the second of so many tokens; its topics are the first `has` in turn.
Block two_documents(std::uint32_t tokens, std::uint32_t has, std::uint32_t words = kLaidWords) {
  std::vector<std::vector<std::uint32_t>> lists{{1, 2, 1}, {}};
  for (std::uint32_t i = 0; i < tokens; ++i) lists[1].push_back(i % words);
  const text::Documents documents = documents_of(lists);
  Block block(documents, 0, 2, Slicing(frequencies_of(documents, words), kLaidTopics, 1), kLaidTopics);
  for (std::uint32_t token = 0; token < block.tokens(); ++token) block.topics[token] = token % has;
  block.count();
  return block;
}

bool is_laid_out(Block block, LayOut when = LayOut::where_cheaper) {
  ByTopic by_topic(kLaidTopics, when);
  by_topic.lay_out(block, 0);
  EXPECT_FALSE(by_topic.has(block.first_line[0]));
  return by_topic.has(block.first_line[1]);
}

TEST(ByTopic, IsForManyTopicsAndManyTokensOfAWord) {
  EXPECT_TRUE(is_laid_out(two_documents(30'000, kLaidTopics)));
  EXPECT_FALSE(is_laid_out(two_documents(30'000, 10)));  // a table of one line
  EXPECT_FALSE(is_laid_out(two_documents(1000, 200, 1000)));  // each token is of another word
  EXPECT_TRUE(is_laid_out(two_documents(1000, 200, 1000), LayOut::always));
  EXPECT_FALSE(is_laid_out(two_documents(900, 900), LayOut::always));  // no room
}

// Goal: counts are the same before, while and after a table is laid out. One entry counts so many tokens that one topic has several, or that none has.
TEST(ByTopic, KeepsCounts) {
  for (const unsigned shift : {0u, 3u}) {
    Block block = two_documents(30'000, 37);
    if (shift != 0) {
      block = two_documents(1000, 5);
      block.shift = shift;
      block.first_long = 0;
      block.count();
    }
    std::vector<TopicCount> before, after;
    block.counts_of(1, before);
    ByTopic by_topic(kLaidTopics, LayOut::always);
    by_topic.lay_out(block, 0);
    const std::uint32_t* const table = block.tables.data() + std::size_t{block.first_line[1]} * kLine;
    for (const auto& [topic, count] : before) EXPECT_EQ(table[topic], count);
    EXPECT_EQ(std::count(table, table + kLaidTopics, 0u), static_cast<std::ptrdiff_t>(kLaidTopics - before.size()));
    by_topic.take_up(block);
    EXPECT_FALSE(by_topic.has(block.first_line[1]));
    block.counts_of(1, after);
    std::ranges::sort(before, {}, &TopicCount::topic);
    EXPECT_EQ(before, after);
    EXPECT_EQ(table[0] >> block.shift,
              std::count_if(table + 1, table + kLaidTopics, [](std::uint32_t entry) { return entry != 0; }));
  }
}

// Foreseen to the byte from the sizes of documents; with few topics nothing is laid out, whatever they are.
TEST(ByTopic, TakesWhatIsForeseen) {
  const std::vector<std::uint32_t> whole{1500, 4000, 1000, 2000, 1100};
  std::vector<std::vector<std::uint32_t>> lists{{1, 2, 1}, std::vector<std::uint32_t>(900, 7)};
  for (const std::uint32_t tokens : whole) lists.emplace_back(tokens, 7u);
  const text::Documents documents = documents_of(lists);
  Block block(documents, 0, lists.size(), Slicing(frequencies_of(documents, 10), kLaidTopics, 1), kLaidTopics);
  block.count();
  std::uint64_t lines = 0;
  for (const std::uint32_t tokens : whole) lines += Block::lines_for(tokens, kLaidTopics, block.shift);
  ByTopic by_topic(kLaidTopics, LayOut::always);
  EXPECT_EQ(by_topic.memory(), ByTopic::memory_of(0, 0, kLaidTopics));
  by_topic.lay_out(block, 0);
  EXPECT_EQ(by_topic.memory(), ByTopic::memory_of(lines, whole.size(), kLaidTopics));
  ByTopic idle(255, LayOut::where_cheaper);
  idle.lay_out(block, 0);
  EXPECT_EQ(idle.memory(), ByTopic::memory_of(lines, whole.size(), 255));
}

// Goal: a sweep goes as far. Method: five documents of 4,000 tokens of 2 subjects of 10 each; four chains of each way from the same start. Relation: the
// mean log-likelihoods a token of both ways are nearly the same after each sweep (those of single chains lie up to 0.06 apart), and far above the start's.
TEST(ByTopic, LearnsAsMuchInASweep) {
  constexpr std::uint32_t topics = 100, chains = 4, sweeps = 20;
  std::vector<std::vector<std::uint32_t>> lists(5);
  for (std::uint32_t d = 0; d < lists.size(); ++d) {
    for (std::uint32_t i = 0; i < 4000; ++i) {
      const auto drawn = random_words(1, d, i, 0);
      const std::uint32_t subject = drawn[0] % 2 == 0 ? d % 10 : (d + 5) % 10;
      lists[d].push_back(subject * 40 + std::min(drawn[1] % 40, drawn[2] % 40));
    }
  }
  const text::Documents documents = documents_of(lists);
  const auto means = [&](const Beginning& beginning) {  // at the start and after each sweep
    std::vector<double> sums(sweeps + 1);
    for (std::uint64_t chain = 0; chain < chains; ++chain) {
      Alone alone({}, documents, 400, {std::vector<double>(topics, 0.05), 0.05}, beginning);
      sums[0] += alone.log_likelihood().per_token() / chains;
      for (std::uint64_t sweep = 0; sweep < sweeps; ++sweep) {
        alone.sweep(1000 * chain + sweep);
        sums[sweep + 1] += alone.log_likelihood().per_token() / chains;
      }
      alone.expect_counts();
    }
    return sums;
  };
  const std::vector<double> from_entries = means({}), by_topic = means({.by_topic = true});
  EXPECT_EQ(by_topic[0], from_entries[0]);
  for (std::size_t sweep = 1; sweep <= sweeps; ++sweep) EXPECT_NEAR(by_topic[sweep], from_entries[sweep], 0.06) << sweep;
  EXPECT_GT(by_topic[sweeps], by_topic[0] + 1);
}

}  // namespace
}  // namespace shoal::learn::topic
