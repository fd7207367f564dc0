// Goal: on real text the exact sampler goes where others go that draw from the same distribution, sweep by sweep. Oracles: log-likelihoods from a random
// start, scored with all constants, of MALLET (K = 1000), and of a prototype that shares no code with this sampler (K = 50). SHOAL_DATA names the
// folder of the sets, where this machine has them.
#include "tests/data/real_sets.h"

#include <map>

#include "shoal/learn/topic/lda.h"
#include "shoal/text/source.h"
#include "tests/net/members.h"

namespace shoal::learn::topic {
namespace {

class TopicRealSets : public RealSets {
 protected:
  // With a fixed prior and two threads, until `unasked` sweeps, or as many as SHOAL_SWEEPS says. Chains scatter by less than 0.02.
  void expect_by_sweep(const char* set, const Prior& prior, const std::map<unsigned, double>& likelihoods,
                       unsigned unasked) const {
    const text::Corpus corpus = text::read_corpus({.files = {folder_ / "lda" / set}}).first;
    const char* const said = std::getenv("SHOAL_SWEEPS");
    const unsigned most = said == nullptr ? unasked : static_cast<unsigned>(std::atoi(said));
    auto jobs = net::join_all(1);
    {
      Lda lda(jobs[0]->transport(), corpus, {.prior = prior, .threads = 2});
      for (const auto& [sweeps, likelihood] : likelihoods) {
        if (sweeps > most) break;
        while (lda.sweeps() < sweeps) lda.sweep();
        EXPECT_NEAR(lda.log_likelihood().per_token(), likelihood, 0.03) << "after " << sweeps << " sweeps";
      }
    }
    net::leave_all(jobs);
  }
};

// 20 Newsgroups, K = 50.
TEST_F(TopicRealSets, is_as_likely_by_sweep_as_the_prototype) {
  expect_by_sweep("docword.20ng_etm.tr.txt.gz", {std::vector<double>(50, 0.1), 0.01},
                  {{10, -8.51}, {20, -8.05}, {50, -7.80}, {500, -7.64}}, 50);
}

// 7.18 million tokens, K = 1000: as far as the first of MALLET's figures, and to the others where SHOAL_SWEEPS asks for them, as at night. None is of 10
// sweeps, when each adds 0.2: there our own chains lie up to 0.06 apart.
TEST_F(TopicRealSets, is_as_likely_by_sweep_as_mallet) {
  expect_by_sweep("docword.ossprose.txt.gz", {std::vector<double>(1000, 0.05), 0.01},
                  {{20, -9.341}, {40, -8.809}, {50, -8.724}}, 20);
}

// Four members whose rows go round, or who tell each other what they did: with the usual staleness counts are as fresh, and sweeps go as far.
TEST_F(TopicRealSets, is_as_likely_where_members_tell_each_other) {
  const text::Source source{.files = {folder_ / "lda/docword.20ng_etm.tr.txt.gz"}};
  const auto after_20 = [&](Parallel parallel) {
    double likelihood = 0;
    auto jobs = net::join_all(4);
    net::each(4, [&](net::Rank rank) {
      const text::Corpus corpus = text::read_corpus(source, {rank, 4}).first;
      Lda lda(jobs[rank]->transport(), corpus, {.prior = {std::vector<double>(50, 0.1), 0.01}, .parallel = parallel});
      while (lda.sweeps() < 20) lda.sweep();
      const double log = lda.log_likelihood().per_token();
      if (rank == 0) likelihood = log;
    });
    net::leave_all(jobs);
    return likelihood;
  };
  const double rotation = after_20(Parallel::rotation);
  EXPECT_NEAR(rotation, -8.05, 0.03);
  EXPECT_NEAR(after_20(Parallel::data), rotation, 0.02);
}

}  // namespace
}  // namespace shoal::learn::topic
