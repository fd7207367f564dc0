// A member's documents in blocks: how many, and one after another between sweeps.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/learn/topic/lda_worker.h"
#include "shoal/learn/topic/memory.h"

namespace shoal::learn::topic {

// How many blocks the member needs whose documents are the largest; all have as many, so that slices go round alike.
std::uint32_t Lda::agreed_blocks(const Kept* kept) {
  const net::Rank members = transport_.size(), rank = transport_.rank();
  const std::vector<std::uint64_t> limits = options_.dealing.memory.empty() ? std::vector<std::uint64_t>(members, options_.memory) : options_.dealing.memory;
  if (std::ranges::count(limits, 0u) == std::ssize(limits)) return 1;
  const MemberPart part{topics_, members, options_.threads, options_.staleness, options_.sampling, rank == 0, options_.parallel,
                        std::accumulate(threads_.begin(), threads_.end(), 0u)};
  const std::uint32_t own = options_.memory == 0 ? 1 : blocks_within(options_.memory, corpus_, part);
  const Footprint own_part = footprint(corpus_, part, own);
  // What was kept is read before anything of this is there.
  const std::uint64_t begun = kept == nullptr ? 0 : own_part.program + own_part.corpus + corpus_.documents.tokens() * sizeof(Topic);
  SharedSums by_rank(member_, "topic-memory", 2 * std::size_t{members});
  std::vector<double> all(2 * std::size_t{members});
  all[rank] = own;
  all[members + rank] = static_cast<double>(std::max(own_part.total(), begun));
  all = by_rank.sum(all);
  const std::span<const double> needed(all.begin() + members, all.end());
  net::Rank most = members;  // who needs most of those who have too little
  for (net::Rank of = 0; of < members; ++of) {
    const bool lacks = limits[of] != 0 && needed[of] > static_cast<double>(limits[of]);
    if (lacks && (most == members || needed[of] > needed[most])) most = of;
  }
  if (most != members) {
    tables_.leave();  // no destructor does; others may still read what this one said
    own_tables_.leave();
    const auto megabytes = [](double bytes) { return std::to_string(static_cast<std::uint64_t>(std::ceil(bytes / 1e6))) + " MB"; };
    throw Error(Code::invalid_argument,
                megabytes(static_cast<double>(limits[most])) + " of memory are too little: rank " + std::to_string(most) + " needs " +
                    megabytes(needed[most]),
                "", "give it that, or take more members, fewer topics or fewer words");
  }
  return static_cast<std::uint32_t>(*std::max_element(all.begin(), all.begin() + members));
}

void Lda::each_document(const std::function<void(std::size_t document, std::span<const TopicCount> counts)>& visit, std::size_t begin,
                        std::size_t end) const {
  std::vector<TopicCount> counts;
  for (const auto& worker : workers_) {
    for (std::uint32_t number = 0; number < blocks_; ++number) {
      const std::size_t first = worker->blocks.first_document(number), last = first + worker->blocks.documents(number);
      if (first >= end || last <= begin) continue;
      const Block& block = worker->blocks.enter(number);
      for (std::size_t d = std::max(first, begin); d < std::min(last, end); ++d) {
        block.counts_of(static_cast<std::uint32_t>(d - first), counts);
        std::ranges::sort(counts, {}, &TopicCount::topic);
        visit(d, counts);
      }
    }
  }
}

namespace {

void append(data::SpilledNumbers& file, std::span<const Topic> topics) {
  constexpr std::size_t together = 1 << 18;  // what waits to be written
  for (std::size_t begin = 0; begin < topics.size(); begin += together)
    file.append(std::as_bytes(topics.subspan(begin, std::min(together, topics.size() - begin))));
}

}  // namespace

void Kept::leave_to_disk(const std::filesystem::path& folder) {
  if (on_disk) return;
  on_disk = std::make_shared<data::SpilledNumbers>(folder, "topics");
  append(*on_disk, topics);
  on_disk->map();
  topics = {};
}

Kept Lda::topics_now() const {
  Kept kept{sweeps_, prior_, {}};
  if (blocks_ > 1) kept.on_disk = std::make_shared<data::SpilledNumbers>(options_.blocks_in, "topics");
  std::vector<Topic> topics;
  for (const auto& worker : workers_) {
    for (std::uint32_t number = 0; number < blocks_; ++number) {
      const Block& block = worker->blocks.enter(number);
      topics.resize(block.tokens());
      for (std::uint32_t token = 0; token < block.tokens(); ++token) topics[block.positions[token]] = block.topics[token];
      if (kept.on_disk) {
        append(*kept.on_disk, topics);
      } else {
        kept.topics.insert(kept.topics.end(), topics.begin(), topics.end());
      }
    }
  }
  if (kept.on_disk) kept.on_disk->map();
  return kept;
}

}  // namespace shoal::learn::topic
