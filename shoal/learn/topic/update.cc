#include "shoal/learn/topic/update.h"

#include <vector>

#include "shoal/core/chunks.h"
#include "shoal/core/error.h"
#include "shoal/core/seed.h"
#include "shoal/learn/topic/gibbs_fold_in.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint32_t kUpdateSite = 0x75706474;  // of the draws of this file; and the members' behind it

}  // namespace

Model with_words(Model model, const data::Names& vocabulary) {
  for (std::uint32_t word = 0; word < model.words(); ++word) {
    if (word >= vocabulary.size() || vocabulary[word] != model.vocabulary[word]) {
      throw Error(Code::invalid_argument, "the vocabulary does not begin with the model's words", "", "other words come behind them");
    }
  }
  model.offsets.resize(vocabulary.size() + std::size_t{1}, model.offsets.back());
  model.vocabulary = vocabulary;
  return model;
}

Kept begun(const Model& before, const text::Documents& documents, std::uint64_t seed, std::uint32_t rank, std::uint32_t threads) {
  const Phi phi(before);
  Kept kept{0, before.prior, std::vector<Topic>(documents.tokens())};
  struct Drawing {
    DrawnTopics drawn;
    const text::Documents& documents;
    std::vector<Topic>& topics;
    std::uint64_t seed;
    std::uint32_t site;
    std::uint64_t operator()(std::size_t begin, std::size_t end) {
      for (std::size_t d = begin; d < end; ++d) {
        drawn.clear();
        for (std::uint64_t i = documents.offsets[d]; i < documents.offsets[d + 1]; ++i) {
          topics[i] = drawn.draw(documents.words()[i], uniform(seed, d, static_cast<std::uint32_t>(i - documents.offsets[d]), site));
          drawn.add(topics[i]);
        }
      }
      return documents.offsets[end] - documents.offsets[begin];
    }
  };
  std::vector<Drawing> workers(threads, Drawing{DrawnTopics(phi), documents, kept.topics, seed, kUpdateSite + rank});
  in_chunks(documents.size(), workers, [](std::uint64_t) {});
  return kept;
}

}  // namespace shoal::learn::topic
