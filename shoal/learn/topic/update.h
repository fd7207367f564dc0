// More documents into a model of which only the counts are left: those stay as they are, under the counts of the new documents, whose topics alone
// are drawn (Lda's `before`). So a model learns on without what it learnt from; documents that it has forgotten do not come to other topics by what
// is new. Threads: any.
#pragma once

#include <cstdint>

#include "shoal/data/names.h"
#include "shoal/learn/topic/lda.h"
#include "shoal/learn/topic/model.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

// vocabulary: the model's words, and behind them others, that no topic has had yet. Throws Error{invalid_argument} where it does not begin with the
// model's.
Model with_words(Model model, const data::Names& vocabulary);

// What an Lda of these documents goes on from: the topic of each token drawn after those of its document so far, with the model held fast. `before`
// has all of the documents' words; rank: this member's.
Kept begun(const Model& before, const text::Documents& documents, std::uint64_t seed, std::uint32_t rank, std::uint32_t threads);

}  // namespace shoal::learn::topic
