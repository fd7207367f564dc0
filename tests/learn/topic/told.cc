// Members that have all rows and tell each other what they did (--parallel data): counts are what the topics say whatever they have told and read by
// then, the same bits whoever is quick, and which way of sharing the work is foreseen to send less.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "shoal/learn/topic/parallel.h"
#include "tests/learn/topic/trained.h"

namespace shoal::learn::topic {
namespace {

Trained told(net::Rank members, std::uint32_t threads, unsigned sweeps, unsigned staleness, const Body& then = {},
             SamplerKind sampler = SamplerKind::exact, std::uint32_t blocks = 1, Start start = Start::random) {
  return trained(members, threads, 7, sweeps, then, 4, sampler, blocks, start, Parallel::data, staleness);
}

TEST(Told, CountsAreWhatTheTopicsSay) {
  each_sampler_in({{1, 2}, {2, 1}, {3, 2}, {2, 2, 4}}, [](SamplerKind sampler, const Setting& in) {
    for (const unsigned sweeps : {0u, 3u}) expect_counts_of_topics(told(in.members, in.threads, sweeps, 1, {}, sampler, in.blocks));
    expect_counts_of_topics(told(in.members, in.threads, 2, 1, {}, sampler, in.blocks, Start::online));
  });
}

// After each sweep, however old the rows are that are read: at most a step, some steps of a round of 12, several rounds.
TEST(Told, CountsAreWhatTheTopicsSayAfterEverySweepWithEveryStaleness) {
  for (const unsigned staleness : {0u, 1u, 2u, 5u, 40u}) {
    SCOPED_TRACE("staleness " + std::to_string(staleness));
    for (unsigned sweeps = 0; sweeps < 5; ++sweeps) expect_counts_of_topics(told(3, 2, sweeps, staleness));
  }
}

// A prior that is fitted, and a state that is kept, are of all members' counts once, whatever has not been read by then.
TEST(Told, PriorsAndKeptStatesAreOfAllCounts) {
  const Body fitted = [](Lda& lda, net::Transport&) {
    lda.optimise_prior();
    lda.keep();
    lda.sweep();
  };
  for (const unsigned staleness : {1u, 5u}) {
    const Trained once = told(3, 1, 3, staleness, fitted);
    expect_counts_of_topics(once);
    expect_same(once, told(3, 1, 3, staleness, fitted));
  }
}

// One member or another is slow, at steps that differ from run to run, and looks at the model in between.
TEST(Told, BitsAreTheSameWhateverTheTiming) {
  const auto slowed = [](net::Rank slow, unsigned every) {
    return Body([slow, every](Lda& lda, net::Transport& transport) {
      unsigned calls = 0;
      for (int sweep = 0; sweep < 3; ++sweep) {
        lda.sweep([&](double) {
          if (transport.rank() == slow && ++calls % every == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
        });
        if (every == 2) lda.log_likelihood();
      }
    });
  };
  for (const unsigned staleness : {0u, 1u, 4u}) {
    SCOPED_TRACE("staleness " + std::to_string(staleness));
    const Trained first = told(3, 2, 1, staleness, slowed(0, 1));
    expect_same(first, told(3, 2, 1, staleness, slowed(2, 2)));
    expect_same(first, told(3, 2, 1, staleness, slowed(1, 5)));
  }
  for (const SamplerKind sampler : kSamplers) expect_same(told(2, 2, 2, 1, slowed(0, 3), sampler), told(2, 2, 2, 1, slowed(1, 2), sampler));
}

// Run through, or gone on from where it was kept amid what was not read yet.
TEST(Told, GoesOnFromWhereItWasKeptToTheSameBits) {
  for (const unsigned staleness : {1u, 5u}) {
    std::vector<Kept> half(3);
    const auto two_more = [](Lda& lda) {
      for (int sweep = 0; sweep < 2; ++sweep) lda.sweep();
    };
    const Trained through = told(3, 2, 2, staleness, [&](Lda& lda, net::Transport& transport) {
      half[transport.rank()] = lda.keep();
      two_more(lda);
    });
    auto jobs = net::join_all(3);
    net::each(3, [&](net::Rank rank) {
      const text::Corpus corpus = share_of(three_subjects(), {rank, 3});
      Lda lda(jobs[rank]->transport(), corpus,
              {.prior = flat(7), .seed = 4, .threads = 2, .staleness = staleness, .parallel = Parallel::data}, &half[rank]);
      EXPECT_EQ(lda.sweeps(), 2u);
      two_more(lda);
      EXPECT_TRUE(std::ranges::equal(lda.keep().of_tokens(), through.kept[rank].of_tokens())) << "rank " << rank;
    });
    net::leave_all(jobs);
  }
}

TEST(Told, SweepsSayWhatWasSent) {
  for (const Parallel parallel : {Parallel::rotation, Parallel::data}) {
    for (const net::Rank members : {1u, 3u}) {
      trained(members, 1, 7, 1, [&](Lda& lda, net::Transport&) { EXPECT_EQ(lda.sweep().sent != 0, members > 1); }, 4, SamplerKind::exact, 1,
              Start::random, parallel);
    }
  }
}

// Rows have no more entries than their words have tokens, so that they are shorter than what several members tell of them; but long ones of a model
// into which few documents come are told to change little.
TEST(Parallel, WhatSendsLessIsForeseen) {
  const std::vector<std::uint64_t> frequencies{100'000, 5000, 300, 20, 3, 1, 1};
  for (const std::uint32_t members : {2u, 3u, 8u, 64u}) {
    for (const std::uint32_t topics : {1u, 10u, 1000u, 1'000'000u}) {
      const ForeseenBytes bytes = foreseen(frequencies, topics, members, 2 * members);
      EXPECT_EQ(bytes.cheaper(), Parallel::rotation);
      EXPECT_GT(bytes.rotation, 0);
      EXPECT_GT(bytes.seconds, 0);
      EXPECT_DOUBLE_EQ(foreseen(frequencies, topics, members, members).seconds, 2 * bytes.seconds);
      EXPECT_EQ(foreseen(frequencies, topics, members, members, 1'000'000'000).cheaper(), Parallel::data);
    }
  }
  EXPECT_EQ(foreseen(frequencies, 10, 1, 4).rotation, 0);
}

}  // namespace
}  // namespace shoal::learn::topic
