#include "shoal/learn/topic/memory.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "shoal/learn/topic/block.h"
#include "shoal/learn/topic/blocks.h"
#include "shoal/learn/topic/by_topic.h"
#include "shoal/learn/topic/totals.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint64_t kProgram = 100'000'000;  // code, libraries and buffers, as measured
constexpr std::uint64_t kShortString = 15;       // letters without memory of their own

std::uint64_t corpus_bytes(const text::Corpus& corpus) {
  std::uint64_t bytes = corpus.documents.offsets.size() * sizeof(std::uint64_t) + corpus.vocabulary.memory() + corpus.names.size() * sizeof(std::string);
  for (const std::string& name : corpus.names) bytes += name.size() > kShortString ? name.size() + 16 : 0;
  if (!corpus.documents.on_disk()) bytes += corpus.documents.tokens() * sizeof(std::uint32_t);
  return bytes + corpus.frequencies.size() * (sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t));  // and the slicing's
}

// Of all words, as begun at random.
struct Rows {
  double pairs = 0, bytes = 0;
};
Rows rows_of(const text::Corpus& corpus, std::uint32_t topics) {
  Rows rows;
  for (const std::uint64_t frequency : corpus.frequencies) {
    const double pairs = different_topics(static_cast<double>(frequency), topics);
    rows.pairs += pairs;
    rows.bytes += static_cast<double>(Slice::memory_of(static_cast<std::uint32_t>(std::ceil(pairs))));
  }
  return rows;
}

// Of one topic and thread: arrays of the samplers.
std::uint64_t drawn_with(const Sampling& sampling) {
  switch (sampling.kind) {
    case SamplerKind::lightlda: return 64;
    case SamplerKind::warplda: return 40;
    case SamplerKind::xy: return 13;
    case SamplerKind::gibbs: return 17;
    case SamplerKind::exact: break;
  }
  return 48;
}

// Of a token, beside the block's.
std::uint64_t beside(const Sampling& sampling) {
  switch (sampling.kind) {
    case SamplerKind::lightlda: return 5;                                            // document_order.h, with its lines
    case SamplerKind::warplda: return 9 + 4 * std::max(1u, sampling.steps);           // and what is proposed and counted
    default: return 0;
  }
}

struct BlockBytes {
  std::uint64_t of_block = 0, by_topic = 0;  // of what its long documents are laid out with
};
BlockBytes block_bytes(const text::Documents& documents, std::size_t begin, std::size_t end, const MemberPart& part, std::size_t words) {
  const std::uint64_t tokens = documents.offsets[end] - documents.offsets[begin];
  std::uint64_t longest = 0, lines = 0, whole_lines = 0, whole = 0;
  for (std::size_t d = begin; d < end; ++d) longest = std::max(longest, documents.offsets[d + 1] - documents.offsets[d]);
  const unsigned shift = Block::shift_for(longest, part.topics);
  for (std::size_t d = begin; d < end; ++d) {
    const std::uint64_t room = Block::lines_for(documents.offsets[d + 1] - documents.offsets[d], part.topics, shift);
    lines += room;
    if (!Block::is_whole(room, part.topics)) continue;
    ++whole;
    whole_lines += room;
  }
  BlockBytes bytes;
  if (part.sampling.kind == SamplerKind::exact) bytes.by_topic = ByTopic::memory_of(whole_lines, whole, part.topics);
  bytes.of_block = tokens * (3 * sizeof(std::uint32_t) + beside(part.sampling)) + std::min<std::uint64_t>(tokens, words) * sizeof(Block::Run) +
         (lines * kLine + (end - begin)) * sizeof(std::uint32_t);
  return bytes;
}

std::uint64_t documents_bytes(const text::Corpus& corpus, const MemberPart& part, std::uint32_t blocks) {
  const text::Documents& documents = corpus.documents;
  const std::size_t words = corpus.frequencies.size();
  constexpr std::uint64_t topic = sizeof(Topic);
  std::uint64_t bytes = 0, aside = 0;
  const auto begins = parts_of(documents, 0, documents.size(), part.threads);
  for (std::uint32_t thread = 0; thread < part.threads; ++thread) {
    const auto parts = parts_of(documents, begins[thread], begins[thread + 1], blocks);
    BlockBytes largest;
    for (std::uint32_t block = 0; block < blocks; ++block) {
      const BlockBytes one = block_bytes(documents, parts[block], parts[block + 1], part, words);
      largest = {std::max(largest.of_block, one.of_block), std::max(largest.by_topic, one.by_topic)};
    }
    bytes += (blocks == 1 ? 1 : 2) * largest.of_block + largest.by_topic;  // a thread draws from one block at a time
    for (std::uint32_t block = 0; block < blocks; ++block) {
      aside = std::max(aside, (documents.offsets[parts[block + 1]] - documents.offsets[parts[block]]) * topic +
                                  (parts[block + 1] - parts[block]) * sizeof(std::size_t));
    }
  }
  // While blocks are made, and when their topics are kept.
  const std::uint64_t kept = blocks == 1 ? documents.tokens() * topic : 0;
  return bytes + kept + aside + words * sizeof(std::uint32_t);
}

}  // namespace

Footprint footprint(const text::Corpus& corpus, const MemberPart& part, std::uint32_t blocks) {
  constexpr double packed = 4;  // bytes of a pair on its way
  constexpr double slack = 1.5; // rows that have moved leave room, and one slice of a thread's two is on its way
  const Rows rows = rows_of(corpus, part.topics);
  Footprint bytes;
  bytes.program = kProgram;
  bytes.corpus = corpus_bytes(corpus);
  // All rows, those that its threads have at a time twice, and what others told of each until its turn comes; or a share of them.
  const bool tells = part.parallel == Parallel::data && part.members > 1;
  const double own = rows.bytes * (tells ? 1 + part.share() : part.share()), whole = part.first ? rows.pairs * (sizeof(TopicCount) + packed) : 0;
  const double workers = part.workers == 0 ? static_cast<double>(part.members) * part.threads : part.workers;
  const double unread = 1 + part.staleness / workers;   // rounds of what others told: one has a step for each worker, or more
  const double under_way = rows.pairs * (tells ? std::max(2.0, (part.members - 1.0) * unread) : 2 * part.share());
  bytes.rows = static_cast<std::uint64_t>(slack * own + whole + packed * under_way);
  // Totals of a thread; rows of their table, as this member serves and reads them; whatever sums them up.
  constexpr std::uint64_t sums = 200;
  const std::uint64_t shared = Totals::table_memory(part.topics, part.staleness, part.members, part.threads);
  bytes.topics = part.topics * (part.threads * drawn_with(part.sampling) + sums) + part.threads * Totals::memory(part.topics, part.staleness) + shared;
  bytes.documents = documents_bytes(corpus, part, blocks);
  return bytes;
}

std::uint32_t blocks_within(std::uint64_t limit, const text::Corpus& corpus, const MemberPart& part) {
  if (footprint(corpus, part, 1).total() <= limit) return 1;
  if (part.sampling.kind == SamplerKind::warplda) return 1;  // it keeps proposals of all tokens from sweep to sweep
  std::uint32_t blocks = 3;
  while (blocks < kMostBlocks && footprint(corpus, part, blocks).total() > limit) blocks += (blocks + 7) / 8;
  return std::min(blocks, kMostBlocks);
}

double different_topics(double tokens, std::uint32_t topics) {
  return topics == 1 ? 1 : -static_cast<double>(topics) * std::expm1(tokens * std::log1p(-1.0 / topics));
}

std::uint64_t resident() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0, all = 0, shared = 0;
  statm >> size >> all >> shared;
  return (all - std::min(all, shared)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace shoal::learn::topic
