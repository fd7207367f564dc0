#include "shoal/learn/topic/completion.h"

#include <cmath>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint32_t kHalvesSite = 0x68616c66;  // of the draws of this file

}  // namespace

double Foretold::perplexity() const { return tokens == 0 ? 0 : std::exp(-log_probability / static_cast<double>(tokens)); }

Foretold& Foretold::operator+=(const Foretold& other) {
  log_probability += other.log_probability;
  tokens += other.tokens;
  unknown += other.unknown;
  return *this;
}

std::pair<text::Documents, text::Documents> halves(const text::Documents& documents, std::uint64_t seed, std::uint64_t first_document) {
  std::pair<text::Documents, text::Documents> split;
  std::vector<std::uint32_t> first, second;
  for (std::size_t d = 0; d < documents.size(); ++d) {
    first.clear();
    second.clear();
    std::uint32_t token = 0;
    for (const std::uint32_t word : documents[d]) {
      (uniform(seed, first_document + d, token++, kHalvesSite) < 0.5 ? first : second).push_back(word);
    }
    split.first.append(first);
    split.second.append(second);
  }
  return split;
}

Foretold complete(const Phi& phi, const text::Documents& shown, const text::Documents& hidden, std::size_t begin, std::size_t end,
                  const FoldInOptions& options) {
  if (shown.size() != hidden.size()) {
    throw Error(Code::invalid_argument, std::to_string(shown.size()) + " documents are shown, " + std::to_string(hidden.size()) + " hidden", {},
                "each document needs both halves");
  }
  FoldIn fold_in(phi, options);
  Predictive predictive(phi);
  Mixture mixture;
  Foretold sum;
  for (std::size_t d = begin; d < end; ++d) {
    fold_in(shown[d], mixture);
    predictive.take(mixture);
    for (const std::uint32_t word : hidden[d]) {
      if (!phi.knows(word)) {
        ++sum.unknown;
        continue;
      }
      sum.log_probability += std::log(predictive(word));
      ++sum.tokens;
    }
  }
  return sum;
}

Foretold complete(const Phi& phi, const text::Documents& shown, const text::Documents& hidden, const FoldInOptions& options) {
  return complete(phi, shown, hidden, 0, shown.size(), options);
}

}  // namespace shoal::learn::topic
