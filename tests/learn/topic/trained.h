// Documents about three subjects, learnt by members of a job: what comes of it, and whether its counts are what its topics say.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "shoal/data/read.h"
#include "shoal/learn/topic/lda.h"
#include "shoal/learn/topic/memory.h"
#include "tests/learn/topic/three_subjects.h"
#include "tests/net/members.h"

namespace shoal::learn::topic {

inline constexpr SamplerKind kSamplers[] = {SamplerKind::exact, SamplerKind::lightlda, SamplerKind::warplda, SamplerKind::xy, SamplerKind::gibbs};

struct Setting {
  net::Rank members;
  std::uint32_t threads, blocks = 1;
};
// By every sampler in every setting, each with as many blocks as that sampler can have.
inline void each_sampler_in(std::initializer_list<Setting> settings, const std::function<void(SamplerKind sampler, const Setting& in)>& visit) {
  for (const SamplerKind sampler : kSamplers) {
    for (Setting in : settings) {
      if (sampler == SamplerKind::warplda) in.blocks = 1;
      SCOPED_TRACE(std::to_string(in.members) + " members, " + std::to_string(in.threads) + " threads, " + std::to_string(in.blocks) + " blocks, sampler " +
                   std::to_string(static_cast<int>(sampler)));
      visit(sampler, in);
    }
  }
}

struct Trained {
  Model model;
  std::vector<Kept> kept;  // by rank
  double log_likelihood = 0;
};

// What takes so many blocks at most.
inline std::uint64_t memory_for(std::uint32_t blocks, const LdaOptions& options, net::Rank members) {
  if (blocks == 1) return 0;
  std::uint64_t most = 0;
  for (net::Rank rank = 0; rank < members; ++rank) {
    const MemberPart part{static_cast<std::uint32_t>(options.prior.alpha.size()), members, options.threads, options.staleness, options.sampling,
                          rank == 0, options.parallel};
    most = std::max(most, footprint(share_of(three_subjects(), {rank, members}), part, blocks).total());
  }
  return most;
}

using Body = std::function<void(Lda& lda, net::Transport& transport)>;
inline Trained trained(net::Rank members, std::uint32_t threads, std::uint32_t topics, unsigned sweeps, const Body& then = {}, std::uint64_t seed = 4,
                       SamplerKind sampler = SamplerKind::exact, std::uint32_t blocks = 1, Start start = Start::random,
                       Parallel parallel = Parallel::rotation, unsigned staleness = 1) {
  const auto documents = three_subjects();
  Trained result;
  result.kept.resize(members);
  auto jobs = net::join_all(members);
  net::each(members, [&](net::Rank rank) {
    const text::Corpus corpus = share_of(documents, {rank, members});
    LdaOptions options{.prior = flat(topics), .seed = seed, .threads = threads, .staleness = staleness, .start = start, .sampling = {sampler},
                       .parallel = parallel, .blocks_in = testing::TempDir()};
    options.memory = memory_for(blocks, options, members);
    Lda lda(jobs[rank]->transport(), corpus, options);
    EXPECT_EQ(lda.blocks() == 1, blocks == 1);
    EXPECT_LE(lda.blocks(), blocks);
    for (unsigned sweep = 0; sweep < sweeps; ++sweep) lda.sweep();
    if (then) then(lda, jobs[rank]->transport());
    const double log = lda.log_likelihood().per_token();
    Model model = lda.model();
    result.kept[rank] = lda.keep();
    if (rank != 0) return;
    result.model = std::move(model);
    result.log_likelihood = log;
  });
  net::leave_all(jobs);
  return result;
}

inline void expect_counts_of_topics(const Trained& result) {
  const auto documents = three_subjects();
  const auto members = static_cast<net::Rank>(result.kept.size());
  std::vector<std::vector<std::uint32_t>> counts(kLdaWords, std::vector<std::uint32_t>(result.model.topics()));
  for (net::Rank rank = 0; rank < members; ++rank) {
    const text::Corpus corpus = share_of(documents, {rank, members});
    for (std::size_t i = 0; i < corpus.documents.tokens(); ++i) ++counts[corpus.documents.words()[i]][result.kept[rank].of_tokens()[i]];
  }
  ASSERT_EQ(result.model.words(), kLdaWords);
  std::vector<std::uint64_t> totals(result.model.topics());
  for (std::uint32_t word = 0; word < kLdaWords; ++word) {
    std::vector<TopicCount> row;
    for (Topic topic = 0; topic < result.model.topics(); ++topic) {
      if (counts[word][topic] != 0) row.push_back({topic, counts[word][topic]});
      totals[topic] += counts[word][topic];
    }
    EXPECT_TRUE(std::ranges::equal(result.model[word], row)) << "word " << word;
  }
  EXPECT_EQ(result.model.totals, totals);
}

inline void expect_same(const Trained& one, const Trained& other) {
  EXPECT_EQ(one.model.counts, other.model.counts);
  EXPECT_EQ(one.model.prior.alpha, other.model.prior.alpha);
  for (std::size_t rank = 0; rank < one.kept.size(); ++rank)
    EXPECT_TRUE(std::ranges::equal(one.kept[rank].of_tokens(), other.kept[rank].of_tokens())) << "rank " << rank;
}

}  // namespace shoal::learn::topic
