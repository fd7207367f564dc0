// Whether the top words of a topic belong together, by how they come in texts (Röder, Both and Hinneburg, WSDM 2015). P of words is the share of
// windows that have them all, and e = 1e-12:
//
//   uci     mean over pairs of ln[(P(a, b) + e) / (P(a) P(b))]
//   npmi    the same of each divided by -ln(P(a, b) + e)
//   c_v     mean over words a of the cosine of npmi(a, .) and the sum over words b of npmi(b, .), both over the topic's words
//   u_mass  mean over pairs, b before a, of ln[(D(a, b) / D + e) / (D(b) / D)], by documents (Mimno et al., EMNLP 2011)
//
// As gensim has them, so that figures compare, but for words that no text has, where gensim has NaN or infinity: a pair with such a word has the
// least that a pair can have, npmi -1 and ln e of the others, and the word with itself npmi 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/learn/topic/occurrences.h"

namespace shoal::learn::topic {

constexpr unsigned kPairWindow = 10, kVectorWindow = 110;  // of uci and npmi; of c_v

// Of one topic's words, the most frequent first; of fewer than two words 0.
double uci(std::span<const std::uint32_t> words, const Occurrences& in);
double npmi(std::span<const std::uint32_t> words, const Occurrences& in);
double c_v(std::span<const std::uint32_t> words, const Occurrences& in);
double u_mass(std::span<const std::uint32_t> words, const Occurrences& in);

// How many of the words come in no window.
std::uint64_t missing(std::span<const std::uint32_t> words, const Occurrences& in);

}  // namespace shoal::learn::topic
