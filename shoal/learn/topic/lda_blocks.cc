// A member's documents in blocks: how many, and one after another between sweeps.
#include <algorithm>
#include <cmath>
#include <string>

#include "shoal/core/error.h"
#include "shoal/learn/topic/lda_worker.h"
#include "shoal/learn/topic/memory.h"

namespace shoal::learn::topic {

// How many blocks the member needs whose documents are the largest; all have as many, so that slices go round alike.
std::uint32_t Lda::agreed_blocks() {
  if (options_.memory == 0) return 1;
  const net::Rank members = transport_.size(), rank = transport_.rank();
  const MemberPart part{topics_, members, options_.threads, options_.staleness, options_.sampling, rank == 0};
  const std::uint32_t own = blocks_within(options_.memory, corpus_, part);
  const std::uint64_t needed = footprint(corpus_, part, own).total();
  SharedSums by_rank(member_, "topic-memory", 2 * std::size_t{members});
  std::vector<double> all(2 * std::size_t{members});
  all[rank] = own;
  all[members + rank] = static_cast<double>(needed);
  all = by_rank.sum(all);
  const auto most = std::max_element(all.begin() + members, all.end());
  if (*most > static_cast<double>(options_.memory)) {
    tables_.leave();  // no destructor does; others may still read what this one said
    own_tables_.leave();
    const auto megabytes = [](double bytes) { return std::to_string(static_cast<std::uint64_t>(std::ceil(bytes / 1e6))) + " MB"; };
    throw Error(Code::invalid_argument,
                megabytes(static_cast<double>(options_.memory)) + " of memory are too little: rank " +
                    std::to_string(most - all.begin() - members) + " needs " + megabytes(*most),
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

}  // namespace shoal::learn::topic
