// Goal: windows are counted as by looking at each, coherence is gensim's to six digits, and never NaN.
#include "shoal/learn/topic/coherence.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "tests/learn/topic/handmade.h"

namespace shoal::learn::topic {
namespace {

using Words = std::vector<std::uint32_t>;

// Which windows have the word, one after the other: it comes with a token and goes with a token.
std::vector<bool> slide(std::span<const std::uint32_t> document, std::uint32_t word, unsigned window) {
  if (window == 0 || document.size() <= window) return {std::find(document.begin(), document.end(), word) != document.end()};
  std::vector<bool> has{std::find(document.begin(), document.begin() + window, word) != document.begin() + window};
  for (std::size_t s = 1; s + window <= document.size(); ++s) {
    has.push_back(document[s + window - 1] == word || (document[s - 1] != word && has.back()));
  }
  return has;
}

TEST(Occurrences, are_those_of_each_window) {
  const std::vector<Words> topics{{0, 3, 5}, {3, 1, 7, 2}};
  text::Documents documents;
  for (const Assigned& document : random_assignments(60, 40, 9, 1, 8)) documents.append(document.words);
  for (const unsigned window : {0u, 1u, 2u, 7u, 39u, 50u}) {
    Occurrences in(topics, 8, window);  // word 8 is not in the vocabulary
    in.add(documents, 0, documents.size());
    std::uint64_t windows = 0;
    for (std::size_t d = 0; d < documents.size(); ++d) windows += slide(documents[d], 0, window).size();
    EXPECT_EQ(in.windows(), windows);
    for (const Words& words : topics) {
      for (const std::uint32_t a : words) {
        for (const std::uint32_t b : words) {
          std::uint64_t together = 0;
          for (std::size_t d = 0; d < documents.size(); ++d) {
            const auto has_a = slide(documents[d], a, window), has_b = slide(documents[d], b, window);
            for (std::size_t s = 0; s < has_a.size(); ++s) together += has_a[s] && has_b[s] ? 1 : 0;
          }
          EXPECT_EQ(in.of(a, b), together) << "words " << a << " and " << b << ", window " << window;
        }
      }
    }
  }
}

TEST(Occurrences, add_up) {
  const std::vector<Words> topics{{0, 3, 5}, {3, 1}};
  text::Documents documents;
  for (const Assigned& document : random_assignments(20, 40, 9, 1, 9)) documents.append(document.words);
  Occurrences whole(topics, 9, 4), sum(topics, 9, 4), part(topics, 9, 4);
  whole.add(documents, 0, 20);
  sum.add(documents, 0, 7);
  part.add(documents, 7, 20);
  sum += part;
  EXPECT_EQ(sum.windows(), whole.windows());
  EXPECT_EQ(sum.of(5), whole.of(5));
  EXPECT_EQ(sum.of(3, 0), whole.of(3, 0));
  EXPECT_EQ(sum.of(3, 1), whole.of(3, 1));
}

// Figures of gensim 4.4's CoherenceModel with processes=1 for texts of which text d has 4 d d tokens, token i being the word
// (i i + 3 d + i / 7 + (i >> d)) % 23; the first is empty, the last has 256.
TEST(Coherence, is_that_of_gensim) {
  text::Documents documents;
  for (std::uint32_t d = 0; d < 9; ++d) {
    Words words;
    for (std::uint32_t i = 0; i < 4 * d * d; ++i) words.push_back((i * i + 3 * d + i / 7 + (i >> d)) % 23);
    documents.append(words);
  }
  const std::vector<Words> topics{{1, 2, 10, 4}, {0, 5, 22, 9}, {2, 17, 5, 11}};
  const auto counted_by = [&](unsigned window) {
    Occurrences in(topics, 23, window);
    in.add(documents, 0, documents.size());
    return in;
  };
  const Occurrences by_document = counted_by(0), by_pair = counted_by(kPairWindow), by_vector = counted_by(kVectorWindow);
  const double wanted[3][4] = {{-0.151934631, -0.0463953047, -0.0151320839, 0.547817432},
                               {-0.0979644441, -0.108753981, -0.0354088872, 0.516882375},
                               {-0.0864656322, -0.0939638155, -0.0344175016, 0.425856073}};
  for (std::size_t t = 0; t < 3; ++t) {
    EXPECT_NEAR(u_mass(topics[t], by_document), wanted[t][0], 1e-8);
    EXPECT_NEAR(uci(topics[t], by_pair), wanted[t][1], 1e-8);
    EXPECT_NEAR(npmi(topics[t], by_pair), wanted[t][2], 1e-8);
    EXPECT_NEAR(c_v(topics[t], by_vector), wanted[t][3], 1e-8);
    EXPECT_EQ(missing(topics[t], by_document), 0u);
  }
}

// Words that no text has, that come in every window, that never meet; no text at all; topics of one word and of none.
TEST(Coherence, is_a_number_whatever_the_words) {
  const std::vector<Words> topics{{0, 1, 2}, {3, 4}, {0, 3}, {4}, {}};
  text::Documents some, none;
  some.append(Words{0, 1});
  some.append(Words{0, 2});
  for (const text::Documents* documents : {&some, &none}) {
    Occurrences in(topics, 5, 10);
    in.add(*documents, 0, documents->size());
    for (const Words& words : topics) {
      for (const double figure : {u_mass(words, in), uci(words, in), npmi(words, in), c_v(words, in)}) {
        EXPECT_TRUE(std::isfinite(figure)) << testing::PrintToString(words);
      }
      EXPECT_GE(npmi(words, in), -1);
    }
  }
  Occurrences in(topics, 5, 10);
  in.add(some, 0, 2);
  EXPECT_EQ(npmi(topics[1], in), -1);
  EXPECT_NEAR(u_mass(topics[1], in), std::log(1e-12), 1e-9);
  EXPECT_EQ(missing(topics[1], in), 2u);
  EXPECT_EQ(missing(topics[2], in), 1u);
}

}  // namespace
}  // namespace shoal::learn::topic
