// Goal: lambda is what the equations of stream.h give, written out in double precision; the same bits on any number of threads; members learn alike;
// documents are foretold by what was learnt.
#include "shoal/learn/topic/stream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <vector>

#include "shoal/learn/topic/digamma.h"
#include "tests/learn/topic/alone.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint32_t kStreamWords = 40, kStreamTopics = 5;

data::Names vocabulary() {
  data::Names names;
  for (std::uint32_t word = 0; word < kStreamWords; ++word) names.number("w" + std::to_string(word));
  return names;
}

// Documents of one word at least; each is about one of four subjects with ten words of its own.
text::Documents batch_number(std::uint32_t number, std::uint32_t count) {
  text::Documents documents;
  for (std::uint32_t d = 0; d < count; ++d) {
    std::vector<std::uint32_t> words(1 + random_words(number, d, 0, 0)[0] % 30);
    const std::uint32_t subject = random_words(number, d, 0, 2)[0] % 4;
    for (std::uint32_t i = 0; i < words.size(); ++i) {
      const auto drawn = random_words(number, d, i, 1);
      words[i] = drawn[0] % 10 == 0 ? drawn[1] % kStreamWords : subject * 10 + drawn[1] % 10;
    }
    documents.append(words);
  }
  return documents;
}

StreamOptions options() { return {.prior = {{0.1, 0.2, 0.3, 0.4, 0.5}, 0.05}, .seed = 9}; }

using Matrix = std::vector<std::vector<double>>;  // by word and topic
Matrix lambda_of(const Stream& stream) {
  Matrix lambda(kStreamWords, std::vector<double>(kStreamTopics));
  for (std::uint32_t w = 0; w < kStreamWords; ++w) {
    for (Topic k = 0; k < kStreamTopics; ++k) lambda[w][k] = stream.lambda(w, k);
  }
  return lambda;
}

// The equations, plainly: token after token.
void learn_slowly(Matrix& lambda, const text::Documents& batch, const StreamOptions& how, double t, double all) {
  std::vector<double> totals(kStreamTopics);
  for (const auto& row : lambda) {
    for (Topic k = 0; k < kStreamTopics; ++k) totals[k] += row[k];
  }
  Matrix sums(kStreamWords, std::vector<double>(kStreamTopics));
  for (std::size_t d = 0; d < batch.size(); ++d) {
    std::vector<double> gamma(kStreamTopics, 1);
    const auto phi_of = [&](std::uint32_t word) {
      std::vector<double> phi(kStreamTopics);
      double sum = 0;
      for (Topic k = 0; k < kStreamTopics; ++k) sum += phi[k] = std::exp(digamma(gamma[k]) + digamma(lambda[word][k]) - digamma(totals[k]));
      for (double& each : phi) each /= sum;
      return phi;
    };
    for (unsigned iteration = 0; iteration < how.iterations; ++iteration) {
      std::vector<double> next = how.prior.alpha;
      for (const std::uint32_t word : batch[d]) {
        const auto phi = phi_of(word);
        for (Topic k = 0; k < kStreamTopics; ++k) next[k] += phi[k];
      }
      double change = 0;
      for (Topic k = 0; k < kStreamTopics; ++k) change += std::abs(next[k] - gamma[k]) / kStreamTopics;
      gamma = next;
      if (change < how.settled) break;
    }
    for (const std::uint32_t word : batch[d]) {
      const auto phi = phi_of(word);
      for (Topic k = 0; k < kStreamTopics; ++k) sums[word][k] += phi[k];
    }
  }
  const double rho = std::pow(how.tau0 + t, -how.kappa), scale = all / static_cast<double>(batch.size());
  for (std::uint32_t w = 0; w < kStreamWords; ++w) {
    for (Topic k = 0; k < kStreamTopics; ++k) lambda[w][k] = (1 - rho) * lambda[w][k] + rho * (how.prior.beta + scale * sums[w][k]);
  }
}

// What the members have after these batches, and what they had before; rank 0's where all have the same.
struct Learnt {
  Matrix begun, lambda;
  Model model;
  double perplexity = 0;  // of the last batch, before it was learnt from
};
Learnt learnt(net::Rank members, const StreamOptions& how, const std::vector<text::Documents>& batches) {
  auto jobs = net::join_all(members);
  std::vector<Learnt> all(members);
  net::each(members, [&](net::Rank rank) {
    Stream stream(jobs[rank]->transport(), vocabulary(), how);
    all[rank].begun = lambda_of(stream);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      if (i + 1 == batches.size()) all[rank].perplexity = stream.foretell(batches[i]).perplexity();
      stream.learn(batches[i]);
    }
    all[rank].lambda = lambda_of(stream);
    all[rank].model = stream.model();
  });
  net::leave_all(jobs);
  for (const Learnt& one : all) {
    EXPECT_EQ(one.lambda, all[0].lambda);
    EXPECT_EQ(one.perplexity, all[0].perplexity);
  }
  return all[0];
}

std::vector<text::Documents> batches_of(std::initializer_list<std::uint32_t> sizes) {
  std::vector<text::Documents> batches;
  for (const std::uint32_t size : sizes) batches.push_back(batch_number(static_cast<std::uint32_t>(batches.size()), size));
  return batches;
}

void expect_near(const Matrix& found, const Matrix& wanted, double part) {
  for (std::uint32_t w = 0; w < kStreamWords; ++w) {
    for (Topic k = 0; k < kStreamTopics; ++k) EXPECT_NEAR(found[w][k], wanted[w][k], part * (wanted[w][k] + 0.01)) << "word " << w << ", topic " << k;
  }
}

TEST(Stream, LearnsWhatTheEquationsSay) {
  // As many steps as there are, so that rounding does not end them sooner; then until gamma stands.
  for (const auto& [iterations, settled] : {std::pair{12u, 0.0}, {50u, 1e-3}}) {
    for (const double tau0 : {1.0, 64.0}) {
      for (const auto& batches : {batches_of({50}), batches_of({50, 1, 60, 7})}) {
        StreamOptions how = options();
        how.iterations = iterations;
        how.settled = settled;
        how.tau0 = tau0;
        how.kappa = 0.7;
        for (const std::uint64_t documents : {std::uint64_t{0}, std::uint64_t{10'000}}) {
          how.documents = documents;
          const Learnt result = learnt(1, how, batches);
          Matrix lambda = result.begun;
          std::uint64_t come = 0;
          for (std::size_t t = 0; t < batches.size(); ++t) {
            come += batches[t].size();
            learn_slowly(lambda, batches[t], how, static_cast<double>(t), static_cast<double>(std::max(come, documents)));
          }
          expect_near(result.lambda, lambda, settled == 0 ? 1e-4 : 5e-3);
        }
      }
    }
  }
}

TEST(Stream, BeginsNearOne) {
  const Learnt result = learnt(1, options(), {});
  double sum = 0, squares = 0;
  for (const auto& row : result.begun) {
    for (const double value : row) {
      sum += value;
      squares += (value - 1) * (value - 1);
    }
  }
  EXPECT_NEAR(sum / (kStreamWords * kStreamTopics), 1, 0.035);  // five standard errors
  EXPECT_NEAR(squares / (kStreamWords * kStreamTopics), 0.01, 0.005);
}

TEST(Stream, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto batches = batches_of({700, 300});
  StreamOptions how = options();
  const Learnt one = learnt(1, how, batches);
  how.threads = 3;
  const Learnt three = learnt(1, how, batches);
  EXPECT_EQ(three.lambda, one.lambda);
  EXPECT_EQ(three.perplexity, one.perplexity);
}

TEST(Stream, MembersLearnAlikeAndTheSameEachTime) {
  const auto batches = batches_of({70, 2, 61});  // 2: somebody has no document
  const Learnt alone = learnt(1, options(), batches);
  for (const net::Rank members : {2u, 3u, 5u}) {
    const Learnt together = learnt(members, options(), batches);
    expect_near(together.lambda, alone.lambda, 1e-3);
    EXPECT_NEAR(together.perplexity, alone.perplexity, 1e-3 * alone.perplexity);
    EXPECT_EQ(together.lambda, learnt(members, options(), batches).lambda);
  }
}

TEST(Stream, ForetellsByWhatItHasLearnt) {
  const auto before = learnt(1, options(), batches_of({100}));
  const auto after = learnt(1, options(), batches_of({100, 100, 100, 100, 100, 100}));
  EXPECT_LT(after.perplexity, 0.6 * before.perplexity);
  EXPECT_LT(after.perplexity, 18);  // ten words of a subject, and a tenth of the tokens are any of forty
}

TEST(Stream, LeavesItsExpectedCountsInWholeNumbers) {
  StreamOptions how = options();
  how.documents = 1000;
  constexpr double part = 0.4;  // of them have come
  const Learnt result = learnt(1, how, batches_of({200, 200}));
  std::vector<std::uint64_t> totals(kStreamTopics);
  for (std::uint32_t w = 0; w < kStreamWords; ++w) {
    std::vector<std::uint32_t> row(kStreamTopics);
    for (const auto& [topic, count] : result.model[w]) {
      row[topic] = count;
      totals[topic] += count;
      EXPECT_GT(count, 0u);
    }
    double expected = 0, kept = 0;
    for (Topic k = 0; k < kStreamTopics; ++k) {
      EXPECT_NEAR(row[k], part * (result.lambda[w][k] - 0.05), 1 - 1e-6);
      expected += part * (result.lambda[w][k] - 0.05);
      kept += row[k];
      for (Topic other = 0; other < kStreamTopics; ++other) {  // nobody is rounded down who has a larger remainder than one that is rounded up
        const double here = part * (result.lambda[w][k] - 0.05), there = part * (result.lambda[w][other] - 0.05);
        if (row[k] > here + 1e-6 && row[other] + 1e-6 < there) {
          EXPECT_GE(here - std::floor(here) + 1e-9, there - std::floor(there));
        }
      }
    }
    EXPECT_NEAR(kept, expected, 0.5 + 1e-6);
  }
  EXPECT_EQ(result.model.totals, totals);
}

TEST(Stream, RefusesWhatCannotBe) {
  auto jobs = net::join_all(1);
  const auto refusal = [&](const auto& change) -> std::string {
    StreamOptions how = options();
    change(how);
    try {
      Stream stream(jobs[0]->transport(), vocabulary(), how);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.fact();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal([](StreamOptions& how) { how.tau0 = 0.5; }), "tau0 must be at least 1");
  EXPECT_EQ(refusal([](StreamOptions& how) { how.kappa = 1.5; }), "kappa must be above 0 and at most 1");
  EXPECT_EQ(refusal([](StreamOptions& how) { how.prior.alpha[2] = 0; }), "alpha and beta must be above 0");
  EXPECT_EQ(refusal([](StreamOptions& how) { how.prior.alpha.clear(); }), "0 topics");
  {
    Stream stream(jobs[0]->transport(), vocabulary(), options());
    text::Documents strange;
    strange.append(std::vector<std::uint32_t>{3, kStreamWords});
    EXPECT_THROW(stream.learn(strange), Error);
    stream.learn(text::Documents());  // nothing
    EXPECT_EQ(stream.batches(), 0u);
  }
  net::leave_all(jobs);
}

TEST(Stream, GoesOnFromWhatWasKeptToTheSameBits) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / ("shoal-stream-" + std::to_string(getpid()) + ".safetensors");
  auto jobs = net::join_all(1);
  {
    net::Transport& transport = jobs[0]->transport();
    Stream through(transport, vocabulary(), options());
    through.learn(batch_number(1, 30));
    through.keep(file);
    through.learn(batch_number(2, 30));
    StreamOptions how = options();
    how.channel = 21;
    how.seed = 3;  // of the first lambda, which is not this one's any more
    Stream later(transport, vocabulary(), how);
    later.go_on_from(file);
    EXPECT_EQ(later.batches(), 1u);
    EXPECT_EQ(later.documents(), 30u);
    later.learn(batch_number(2, 30));
    EXPECT_EQ(lambda_of(later), lambda_of(through));
    EXPECT_EQ(later.tokens(), through.tokens());

    const auto refusal = [&](Stream& stream) -> std::string {
      try {
        stream.go_on_from(file);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::invalid_argument);
        return error.fact();
      }
      return "accepted";
    };
    how.channel = 22;
    how.prior.alpha.pop_back();
    Stream of_fewer(transport, vocabulary(), how);
    EXPECT_EQ(refusal(of_fewer), "is of another number of topics");
    how = options();
    how.channel = 23;
    data::Names others;
    for (std::uint32_t word = 0; word < kStreamWords; ++word) others.number("v" + std::to_string(word));
    Stream of_others(transport, others, how);
    EXPECT_EQ(refusal(of_others), "is of other words");
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
    EXPECT_NE(refusal(later), "accepted");
  }
  net::leave_all(jobs);
  std::filesystem::remove(file);
}

// psi and its exponential against differences of lgamma.
TEST(Digamma, IsTheSlopeOfLogGamma) {
  for (const double x : {1e-5, 0.05, 0.5, 1.0, 3.3, 5.9, 6.1, 40.0, 1e7}) {
    const double step = 1e-4 * x;
    const double slope = (8 * (std::lgamma(x + step) - std::lgamma(x - step)) - (std::lgamma(x + 2 * step) - std::lgamma(x - 2 * step))) / (12 * step);
    EXPECT_NEAR(digamma(x), slope, 1e-6 * std::max(1.0, std::abs(slope)));
    float weight = 0;
    exp_digammas(std::span<const double>(&x, 1), digamma(x) + 0.5, &weight);
    EXPECT_NEAR(weight, std::exp(-0.5), 1e-6) << x;
  }
}

}  // namespace
}  // namespace shoal::learn::topic
