// The table of a long document, whose topics have more tokens than an entry can count, against counts of a map.
#include "shoal/learn/topic/block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "shoal/learn/topic/counts.h"
#include "tests/learn/topic/alone.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint32_t kManyTopics = 1u << 20;  // entries count to 2,047

Block block_of(const text::Documents& documents, std::uint32_t topics) {
  return Block(documents, 0, documents.size(), Slicing(frequencies_of(documents, 3), topics, 1), topics);
}

std::vector<TopicCount> expected(const std::map<Topic, std::uint32_t>& counts) {
  std::vector<TopicCount> list;
  for (const auto& [topic, count] : counts) {
    if (count != 0) list.push_back({topic, count});
  }
  return list;
}

TEST(Block, CountsALongDocumentWhateverMoves) {
  constexpr std::uint32_t tokens = 12'000;
  const text::Documents documents = documents_of({{1, 2}, std::vector<std::uint32_t>(tokens, 0)});
  Block block = block_of(documents, kManyTopics);
  ASSERT_EQ(block.most(), 2047u);
  const std::uint32_t line = block.first_line[1];
  EXPECT_EQ(block.first_long, line);
  std::map<Topic, std::uint32_t> counts;
  std::vector<Topic> topics;
  std::vector<TopicCount> kept;
  // A few topics have all of it; now and then the favourite is another, so that full entries empty and fill.
  for (std::uint32_t token = 0; token < block.tokens(); ++token) {
    block.topics[token] = random_words(1, token, 0, 0)[0] % 3;
    if (block.lines[token] != line) continue;
    topics.push_back(block.topics[token]);
    ++counts[topics.back()];
  }
  block.count();
  DocumentCounts document(block, line);
  const std::uint32_t room = static_cast<std::uint32_t>(block.tables.size() / kLine - line) * kLine;
  for (std::uint32_t move = 0; move < 200'000; ++move) {
    const auto drawn = random_words(2, move, 0, 0);
    Topic& topic = topics[drawn[0] % tokens];
    document.remove(topic);
    --counts[topic];
    topic = drawn[1] % 4 == 0 ? drawn[2] % kManyTopics : move / 40'000;
    document.add(topic);
    ++counts[topic];
    ASSERT_LT(document.entries(), room);
    if (move % 20'000 != 0) continue;
    block.counts_of(1, kept);
    EXPECT_EQ(kept, expected(counts)) << "after " << move << " moves";
    EXPECT_EQ(document.of(topic), counts[topic]);
  }
  // All but one entry of a topic are full.
  std::map<Topic, std::uint32_t> open;
  for (std::uint32_t i = 0; i < document.entries(); ++i) open[document[i].topic] += document[i].count < block.most();
  EXPECT_TRUE(std::ranges::all_of(open, [](const auto& of) { return of.second <= 1; }));
}

TEST(Block, CountsADocumentOfAMillionTokensAndAMillionTopics) {
  constexpr std::uint32_t tokens = 1'000'000, topics = 1'000'000;
  std::vector<std::uint32_t> words(tokens);
  for (std::uint32_t i = 0; i < tokens; ++i) words[i] = i % 3;
  Block block = block_of(documents_of({words}), topics);
  EXPECT_EQ(block.most(), 4095u);
  std::vector<TopicCount> kept;
  for (const std::uint32_t among : {topics, 7u}) {
    std::map<Topic, std::uint32_t> counts;
    for (std::uint32_t token = 0; token < tokens; ++token) ++counts[block.topics[token] = random_words(3, token, 0, 0)[0] % among];
    block.count();
    block.counts_of(0, kept);
    EXPECT_EQ(kept, expected(counts));
  }
}

// Tables of any width, between short documents and long ones, have what a map counts: all topics different, which fills the table; few; any.
TEST(Block, CountsTablesOfAnyWidth) {
  constexpr std::uint32_t topics = 70'000;  // entries count to 32,767
  std::vector<std::vector<std::uint32_t>> texts;
  for (const std::uint32_t tokens : {0u, 1u, 15u, 16u, 239u, 255u, 256u, 257u, 1'009u, 20'000u, 32'767u, 32'768u}) {
    for (const std::uint32_t among : {0u, 5u, topics}) {
      texts.push_back(std::vector<std::uint32_t>(tokens));
      for (std::uint32_t i = 0; i < tokens; ++i) texts.back()[i] = (i + among) % 3;
    }
  }
  const text::Documents documents = documents_of(texts);
  Block block = block_of(documents, topics);
  ASSERT_EQ(block.most(), 32'767u);
  std::map<std::uint32_t, std::uint32_t> document_at, seen;  // by line
  for (std::uint32_t d = 0; d < block.documents(); ++d) document_at[block.first_line[d]] = d;
  for (const std::uint32_t pass : {0u, 1u}) {  // what a table had before is gone
    std::vector<std::map<Topic, std::uint32_t>> counts(block.documents());
    for (std::uint32_t token = 0; token < block.tokens(); ++token) {
      const std::uint32_t document = document_at.at(block.lines[token]), drawn = random_words(4, token, pass, 0)[0];
      block.topics[token] = document % 3 == 0 ? topics - 1 - seen[document]++ % topics : drawn % (document % 3 == 1 ? 5 : topics);
      ++counts[document][block.topics[token]];
    }
    block.count();
    std::vector<TopicCount> kept;
    for (std::uint32_t d = 0; d < block.documents(); ++d) {
      block.counts_of(d, kept);
      std::ranges::sort(kept, {}, &TopicCount::topic);
      EXPECT_EQ(kept, expected(counts[d])) << "document " << d;
    }
  }
}

// No entry takes topics' bits for its count, however long a document is.
TEST(Block, HasRoomToSayHowManyEntriesThereAre) {
  const text::Documents documents = documents_of({std::vector<std::uint32_t>(70'000, 0)});
  for (const std::uint32_t topics : {1u, 3u, 65'535u, 65'536u, (1u << 20) - 1, 1u << 24}) {
    Block block = block_of(documents, topics);
    EXPECT_LE(std::uint64_t{topics - 1} << block.shift, UINT32_MAX);
    EXPECT_EQ(block.first_long != UINT32_MAX, block.most() < 70'000) << topics;
    for (std::uint32_t token = 0; token < block.tokens(); ++token) block.topics[token] = topics - 1 - token % std::min(topics, 40'000u);
    block.count();
    std::vector<TopicCount> kept;
    block.counts_of(0, kept);
    EXPECT_EQ(kept.size(), std::min(topics, 40'000u));
    std::uint64_t sum = 0;
    for (const TopicCount& pair : kept) sum += pair.count;
    EXPECT_EQ(sum, 70'000u);
  }
}

}  // namespace
}  // namespace shoal::learn::topic
