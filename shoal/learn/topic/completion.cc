#include "shoal/learn/topic/completion.h"

#include <cmath>
#include <optional>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint32_t kHalvesSite = 0x68616c66;  // of the draws of this file

// visit(token, probability) for each hidden token of documents `begin` to `end` - 1 after what is shown of its document; nothing where phi has not its word.
template <class Visit>
void foretell(const Phi& phi, const text::Documents& shown, const text::Documents& hidden, std::size_t begin, std::size_t end,
              const FoldInOptions& options, const Visit& visit) {
  if (shown.size() != hidden.size()) {
    throw Error(Code::invalid_argument, std::to_string(shown.size()) + " documents are shown, " + std::to_string(hidden.size()) + " hidden", {},
                "each document needs both halves");
  }
  FoldIn fold_in(phi, options);
  Predictive predictive(phi);
  Mixture mixture;
  for (std::size_t d = begin; d < end; ++d) {
    fold_in(shown[d], mixture);
    predictive.take(mixture);
    std::uint64_t token = hidden.offsets[d];
    for (const std::uint32_t word : hidden[d]) visit(token++, phi.knows(word) ? std::optional(predictive(word)) : std::nullopt);
  }
}

void score(Foretold& sum, std::optional<double> probability) {
  if (!probability) {
    ++sum.unknown;
    return;
  }
  sum.log_probability += std::log(*probability);
  ++sum.tokens;
}

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
  Foretold sum;
  foretell(phi, shown, hidden, begin, end, options, [&](std::uint64_t, std::optional<double> probability) { score(sum, probability); });
  return sum;
}

Foretold complete(const Phi& phi, const text::Documents& shown, const text::Documents& hidden, const FoldInOptions& options) {
  return complete(phi, shown, hidden, 0, shown.size(), options);
}

Foretold MeanCompletion::add(const Phi& phi) {
  Foretold alone;
  foretell(phi, shown_, hidden_, 0, shown_.size(), {}, [&](std::uint64_t token, std::optional<double> probability) {
    score(alone, probability);
    sums_[token] += probability.value_or(0);
  });
  ++states_;
  return alone;
}

Foretold MeanCompletion::foretold() const {
  Foretold sum;
  for (const double probability : sums_) score(sum, probability > 0 ? std::optional(probability / states_) : std::nullopt);
  return sum;
}

}  // namespace shoal::learn::topic
