// Goal: on real text the exact sampler goes where MALLET goes, sweep by sweep. Oracle: MALLET's log-likelihoods from a random start, scored with all
// constants. SHOAL_DATA names the folder of the sets, where this machine has them.
#include "tests/data/real_sets.h"

#include <map>

#include "shoal/learn/topic/lda.h"
#include "shoal/text/source.h"
#include "tests/net/members.h"

namespace shoal::learn::topic {
namespace {

class TopicRealSets : public RealSets {};

// 20 Newsgroups, K = 50, alpha 0.1, beta 0.01, both fixed. Chains scatter by less than 0.02. SHOAL_SWEEPS=500 goes on so far.
TEST_F(TopicRealSets, is_as_likely_by_sweep_as_mallet) {
  const text::Corpus corpus = text::read_corpus({.files = {folder_ / "lda/docword.20ng_etm.tr.txt.gz"}}).first;
  const std::map<unsigned, double> mallet{{10, -8.51}, {20, -8.05}, {50, -7.80}, {500, -7.64}};
  const char* const said = std::getenv("SHOAL_SWEEPS");
  const unsigned most = said == nullptr ? 50 : static_cast<unsigned>(std::atoi(said));
  auto jobs = net::join_all(1);
  {
    Lda lda(jobs[0]->transport(), corpus, {.prior = {std::vector<double>(50, 0.1), 0.01}, .threads = 2});
    for (const auto& [sweeps, likelihood] : mallet) {
      if (sweeps > most) break;
      while (lda.sweeps() < sweeps) lda.sweep();
      EXPECT_NEAR(lda.log_likelihood().per_token(), likelihood, 0.03) << "after " << sweeps << " sweeps";
    }
  }
  net::leave_all(jobs);
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
