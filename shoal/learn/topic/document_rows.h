// How many tokens of each document have each topic (C_dk), as training left them beside the model: what of the topics of tokens the log-likelihood
// needs and the words' rows do not have, for it does not matter which tokens of a document have them.
//
//   doc_counts.safetensors  offsets, topics, counts: the documents' rows, compressed as those of words are (model_files.h), in the order of
//                           doc_topics.tsv; a document that was held out has an empty one
//
// Values; threads: share while nobody adds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shoal/learn/model_folder.h"
#include "shoal/learn/topic/likelihood.h"
#include "shoal/learn/topic/model.h"

namespace shoal::learn::topic {

class DocumentRows {
 public:
  void add(std::span<const TopicCount> counts);  // each topic once
  std::size_t size() const { return offsets_.size() - 1; }
  std::span<const TopicCount> operator[](std::size_t document) const {
    return std::span(counts_).subspan(offsets_[document], offsets_[document + 1] - offsets_[document]);
  }

 private:
  std::vector<std::uint64_t> offsets_ = {0};
  std::vector<TopicCount> counts_;
};

// Nothing: they are not known, and what the folder has of another model's goes. Throws Error{io}.
void write_document_rows(const ModelFolder& folder, const std::optional<DocumentRows>& rows);
// None where the folder has no such file. Throws Error{invalid_argument} where they do not add up to the model's totals.
std::optional<DocumentRows> read_document_rows(const ModelFolder& folder, const Model& model);

LogLikelihood log_likelihood(const Model& model, const DocumentRows& rows);  // all of it

}  // namespace shoal::learn::topic
