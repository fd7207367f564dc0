// The verbs of `shoal topics`, and what those share that use a model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/topics_text.h"
#include "shoal/learn/gather.h"
#include "shoal/learn/topic/document_rows.h"
#include "shoal/learn/topic/lda.h"
#include "shoal/learn/topic/model.h"
#include "shoal/learn/topic/training.h"

namespace shoal::app {

Action declare_topics_train(CLI::App& app);
Action declare_topics_update(CLI::App& app);
Action declare_topics_infer(CLI::App& app);
Action declare_topics_evaluate(CLI::App& app);
Action declare_topics_show(CLI::App& app);

// A model that train left, and texts as it needs them.
struct TopicsModel {
  learn::topic::Model model;
  learn::Json config = learn::Json::object();  // of another program's state: empty

  explicit TopicsModel(const std::string& folder);
  explicit TopicsModel(learn::topic::Model other) : model(std::move(other)) {}  // of another program
  // Words are told from the text as in training, and numbered by the model; documents stay whole. Says on err what was read, unless quiet.
  text::Corpus read(const TextOptions& options, bool quiet) const;
};

// Texts with the words of a vocabulary imposed on them: documents stay whole, other words keep their places and are counted.
text::Source in_words_of(const data::Names& vocabulary, const TextOptions& texts);
// Halves of the same documents, which meet by the documents' names: as many as `hidden` has, of some of which nothing may be shown. Throws
// Error{invalid_argument} where they have no name in common.
learn::topic::HeldOut met_by_name(const text::Corpus& shown, text::Corpus hidden);

// A line of words for each of some topics (some_words), indented.
std::string lines_of(const std::vector<std::vector<std::uint32_t>>& topics, const data::Names& vocabulary);

// Documents that have lines in doc_topics.tsv without having been learnt from in this run.
struct OtherDocuments {
  std::vector<std::string> before = {};             // lines of a model that more documents came into
  // Their counts of topics; nothing where they are not known, and then none are left of any document.
  std::optional<learn::topic::DocumentRows> rows = learn::topic::DocumentRows();
  const learn::topic::HeldOut* held_out = nullptr;  // topics are folded in
  std::vector<std::uint32_t> unknown = {};          // tokens of other words in each document that was learnt from; empty: in none
};
// All that train leaves but config.json: topics of documents, pages, and last the model. By all members, into rank 0's folder.
void write_results(learn::topic::Lda& lda, learn::Gather& gather, const learn::ModelFolder& folder, OtherDocuments others);

// Throws Error{invalid_argument} in a job of several: each would do all of it.
void only_one_member(const char* command);

inline constexpr const char* kThreadsOfThis = "of this member (default: OMP_NUM_THREADS, which shoal run sets to its share of the cores, or all cores)";
// --threads: what was asked for, or OMP_NUM_THREADS, which launchers set, or as many as there are cores.
std::size_t threads_of(unsigned asked);

}  // namespace shoal::app
