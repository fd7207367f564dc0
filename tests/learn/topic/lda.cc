// Topic models on threads and members: counts are what the topics say, the same bits whatever the timing, and goes on where it was kept.
#include "shoal/learn/topic/lda.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "shoal/data/read.h"
#include "shoal/learn/topic/checkpoint.h"
#include "shoal/learn/topic/memory.h"
#include "tests/learn/topic/trained.h"
#include "tests/net/members.h"

namespace shoal::learn::topic {
namespace {

TEST(Lda, FindsSubjects) {
  const Trained result = trained(1, 1, 3, 60);
  // Each topic has the words of one subject, almost all of them.
  std::vector<bool> found(3);
  for (std::uint32_t subject = 0; subject < 3; ++subject) {
    std::vector<std::uint64_t> of(3);
    for (std::uint32_t word = subject * 20; word < subject * 20 + 20; ++word) {
      for (const auto& [topic, count] : result.model[word]) of[topic] += count;
    }
    const auto most = std::ranges::max_element(of);
    EXPECT_GT(*most, 0.97 * static_cast<double>(std::accumulate(of.begin(), of.end(), std::uint64_t{0})));
    found[static_cast<std::size_t>(most - of.begin())] = true;
  }
  EXPECT_EQ(found, std::vector<bool>(3, true));
}

TEST(Lda, SeedWordsBeginWithTheirTopics) {
  const auto documents = three_subjects();
  for (const Start start : {Start::random, Start::online}) {
    auto jobs = net::join_all(1);
    {
      const text::Corpus corpus = share_of(documents, {});
      // Subjects 2, 0 and 1 are to be topics 0, 1 and 2: three words of each say so, and the others follow.
      std::vector<std::pair<std::uint32_t, Topic>> seeds;
      for (std::uint32_t subject = 0; subject < 3; ++subject) {
        for (std::uint32_t word = 0; word < 3; ++word) seeds.emplace_back(subject * 20 + word, (subject + 1) % 3);
      }
      Lda lda(jobs[0]->transport(), corpus, {.prior = flat(3), .seed = 4, .threads = 2, .seeds = seeds, .start = start});
      const Model begun = lda.model();
      for (const auto& [word, topic] : seeds) {
        ASSERT_EQ(begun[word].size(), 1u);
        EXPECT_EQ(begun[word].front().topic, topic);
      }
      for (int sweep = 0; sweep < 30; ++sweep) lda.sweep();
      const Model model = lda.model();
      for (std::uint32_t word = 0; word < kLdaWords; ++word) {
        const auto most = std::ranges::max_element(model[word], {}, &TopicCount::count);
        EXPECT_EQ(most->topic, (word / 20 + 1) % 3) << "word " << word;
      }
    }
    net::leave_all(jobs);
  }
}

TEST(Lda, CountsAreWhatTheTopicsSayOnThreadsAndMembers) {
  each_sampler_in({{1, 1}, {1, 3}, {2, 1}, {3, 2}}, [](SamplerKind sampler, const Setting& in) {
    for (const unsigned sweeps : {0u, 1u, 5u}) expect_counts_of_topics(trained(in.members, in.threads, 7, sweeps, {}, 4, sampler));
  });
}

// Documents in several blocks on disk, some of them of no document.
TEST(Lda, CountsAreWhatTheTopicsSayInBlocks) {
  for (const SamplerKind sampler : kSamplers) {
    if (sampler == SamplerKind::warplda) continue;  // has one block
    for (const auto& [members, threads, blocks] : {std::tuple{1u, 1u, 3u}, {1u, 2u, 8u}, {2u, 1u, 3u}, {3u, 2u, 4u}}) {
      SCOPED_TRACE(std::to_string(members) + " members, " + std::to_string(threads) + " threads, sampler " +
                   std::to_string(static_cast<int>(sampler)));
      for (const unsigned sweeps : {0u, 1u, 5u}) expect_counts_of_topics(trained(members, threads, 7, sweeps, {}, 4, sampler, blocks));
    }
  }
}

TEST(Lda, HasTheSameBitsInBlocksWhateverTheTiming) {
  const Body prior = [](Lda& lda, net::Transport&) {
    lda.optimise_prior();
    lda.sweep();
  };
  for (const SamplerKind sampler : {SamplerKind::exact, SamplerKind::lightlda})
    expect_same(trained(2, 2, 9, 6, prior, 4, sampler, 4), trained(2, 2, 9, 6, prior, 4, sampler, 4));
}

TEST(Lda, GoesOnInBlocksFromWhereItWasKeptToTheSameBits) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("shoal-blocks-" + std::to_string(getpid()));
  const Trained through = trained(1, 2, 9, 3, [&](Lda& lda, net::Transport& transport) {
    Checkpoints(transport, folder).write(lda.keep(), lda.corpus().documents, lda.share());
    for (int sweep = 0; sweep < 3; ++sweep) lda.sweep();
  }, 4, SamplerKind::exact, 4);
  auto jobs = net::join_all(1);
  {
    const text::Corpus corpus = share_of(three_subjects(), {});
    LdaOptions options{.prior = flat(9), .seed = 4, .threads = 2, .blocks_in = testing::TempDir()};
    options.memory = memory_for(4, options, 1);
    std::optional<Kept> half = Checkpoints(jobs[0]->transport(), folder).newest(corpus, 9, {});
    ASSERT_TRUE(half);
    half->leave_to_disk(testing::TempDir());
    Lda lda(jobs[0]->transport(), corpus, options, &*half);
    for (int sweep = 0; sweep < 3; ++sweep) lda.sweep();
    EXPECT_EQ(lda.model().counts, through.model.counts);
    EXPECT_TRUE(std::ranges::equal(lda.keep().of_tokens(), through.kept[0].of_tokens()));
  }
  net::leave_all(jobs);
  std::filesystem::remove_all(folder);
}

// All members hear it, and which of them it is: one has almost all documents.
TEST(Lda, TooLittleMemoryIsRefusedWithWhatIsNeeded) {
  auto jobs = net::join_all(2);
  net::each(2, [&](net::Rank rank) {
    std::vector<std::vector<std::uint32_t>> documents(200, std::vector<std::uint32_t>(50, 7));
    for (std::size_t d = 0; d < documents.size(); ++d) {
      if (data::Share{0, 2}.holds(d)) documents[d].resize(1);
    }
    const text::Corpus corpus = share_of(documents, {rank, 2});
    LdaOptions options{.prior = flat(1000), .blocks_in = testing::TempDir()};
    const auto needed = [&](net::Rank of) {
      return footprint(share_of(documents, {of, 2}), {.topics = 1000, .members = 2, .first = of == 0}, kMostBlocks).total();
    };
    options.memory = 1'000'000;
    try {
      Lda lda(jobs[rank]->transport(), corpus, options);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      const std::uint64_t most = std::max(needed(0), needed(1));
      EXPECT_EQ(error.fact(), "1 MB of memory are too little: rank " + std::to_string(needed(0) >= needed(1) ? 0 : 1) + " needs " +
                                  std::to_string((most + 999'999) / 1'000'000) + " MB");
    }
  });
  net::leave_all(jobs);
}

TEST(Lda, BeginsOnlineWithCountsOfAllTokensAndTheSameBits) {
  each_sampler_in({{1, 1}, {1, 3}, {3, 2}, {2, 2, 4}}, [](SamplerKind sampler, const Setting& in) {
    const auto online = [&](unsigned sweeps, std::uint32_t topics) {
      return trained(in.members, in.threads, topics, sweeps, {}, 4, sampler, in.blocks, Start::online);
    };
    for (const unsigned sweeps : {0u, 3u}) expect_counts_of_topics(online(sweeps, 7));
    expect_same(online(2, 9), online(2, 9));
    expect_counts_of_topics(online(1, 1));
  });
  // Ahead of a random start, and with shorter rows.
  const Trained online = trained(2, 2, 50, 0, {}, 4, SamplerKind::exact, 1, Start::online), random = trained(2, 2, 50, 0);
  EXPECT_GT(online.log_likelihood, random.log_likelihood);
  EXPECT_LT(online.model.counts.size(), random.model.counts.size());
}

TEST(Lda, MembersMayHaveNoDocument) {
  const std::vector<std::vector<std::uint32_t>> documents{{0, 1, 2}, {3}, {1, 1}};
  auto jobs = net::join_all(5);
  net::each(5, [&](net::Rank rank) {
    const text::Corpus corpus = share_of(documents, {rank, 5});
    Lda lda(jobs[rank]->transport(), corpus, {.prior = flat(3), .threads = 2});
    lda.sweep();
    const Model model = lda.model();
    EXPECT_EQ(std::accumulate(model.totals.begin(), model.totals.end(), std::uint64_t{0}), rank == 0 ? 6u : 0u);
  });
  net::leave_all(jobs);
}

TEST(Lda, MoreTopicsThanTokensAndOne) {
  for (const SamplerKind sampler : kSamplers) {
    expect_counts_of_topics(trained(2, 2, 1, 2, {}, 4, sampler));
    expect_counts_of_topics(trained(2, 1, 20'000, 2, {}, 4, sampler));
  }
}

TEST(Lda, ThreadsAndMembersLearnAlike) {
  // The mean of states of several chains: single ones stay long where they have come to.
  const auto mean = [](net::Rank members, std::uint32_t threads) {
    double sum = 0;
    constexpr unsigned chains = 16, states = 20;
    for (std::uint64_t seed = 1; seed <= chains; ++seed) {
      trained(members, threads, 4, 40, [&](Lda& lda, net::Transport& transport) {
        for (unsigned sweep = 0; sweep < states; ++sweep) {
          lda.sweep();
          const double log = lda.log_likelihood().per_token();
          if (transport.rank() == 0) sum += log;
        }
      }, seed);
    }
    return sum / (chains * states);
  };
  const double alone = mean(1, 1);
  EXPECT_NEAR(mean(1, 3), alone, 0.02);
  EXPECT_NEAR(mean(2, 2), alone, 0.02);
}

TEST(Lda, HasTheSameBitsWhateverTheTiming) {
  const Body prior = [](Lda& lda, net::Transport&) {
    lda.optimise_prior();
    lda.sweep();
  };
  for (const SamplerKind sampler : kSamplers) expect_same(trained(2, 2, 9, 6, prior, 4, sampler), trained(2, 2, 9, 6, prior, 4, sampler));
}

// Stopped after sweep 3 and taken up again, in another folder of files each time, or run through.
TEST(Lda, GoesOnFromACheckpointToTheSameBits) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("shoal-checkpoint-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  const auto documents = three_subjects();
  const Trained through = trained(2, 2, 9, 3, [&](Lda& lda, net::Transport& transport) {
    Checkpoints checkpoints(transport, folder);
    lda.optimise_prior();
    checkpoints.write(lda.keep(), lda.corpus().documents, lda.share());
    for (int sweep = 0; sweep < 3; ++sweep) lda.sweep();
  });
  const auto gone_on = [&](net::Rank members, std::uint32_t threads) {
    Trained result;
    result.kept.resize(members);
    auto jobs = net::join_all(members);
    net::each(members, [&](net::Rank rank) {
      const text::Corpus corpus = share_of(documents, {rank, members});
      Checkpoints checkpoints(jobs[rank]->transport(), folder);
      const std::optional<Kept> kept = checkpoints.newest(corpus, 9, {rank, members});
      ASSERT_TRUE(kept);
      EXPECT_EQ(kept->sweeps, 3u);
      Lda lda(jobs[rank]->transport(), corpus, {.prior = flat(9), .seed = 4, .threads = threads}, &*kept);
      for (int sweep = 0; sweep < 3; ++sweep) lda.sweep();
      Model model = lda.model();
      result.kept[rank] = lda.keep();
      if (rank == 0) result.model = std::move(model);
    });
    net::leave_all(jobs);
    return result;
  };
  expect_same(gone_on(2, 2), through);
  expect_counts_of_topics(gone_on(3, 1));  // documents are dealt anew
  expect_counts_of_topics(gone_on(1, 2));
  // Other data, another number of topics, a file that was cut: one line each, on all members.
  auto jobs = net::join_all(1);
  {
    Checkpoints checkpoints(jobs[0]->transport(), folder);
    auto fewer = documents;
    fewer.front().push_back(1);
    EXPECT_THROW(checkpoints.newest(share_of(fewer, {}), 9, {}), Error);
    EXPECT_THROW(checkpoints.newest(share_of(documents, {}), 4, {}), Error);
    const auto file = folder / "checkpoint" / "sweep-3.rank-1-of-2.safetensors";
    std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
    EXPECT_THROW(checkpoints.newest(share_of(documents, {}), 9, {}), Error);
  }
  net::leave_all(jobs);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace shoal::learn::topic
