// The verbs of `shoal topics`, and what those share that use a model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "app/command.h"
#include "app/topics_text.h"
#include "shoal/learn/gather.h"
#include "shoal/learn/topic/document_rows.h"
#include "shoal/learn/topic/lda.h"
#include "shoal/learn/topic/model.h"

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

// All that train leaves but config.json: topics of documents, pages, and last the model. By all members, into rank 0's folder.
// rows: of documents that the model has before those of lda; nothing where they are not known.
void write_results(learn::topic::Lda& lda, learn::Gather& gather, const learn::ModelFolder& folder,
                   std::optional<learn::topic::DocumentRows> rows = learn::topic::DocumentRows());

// --threads: what was asked for, or OMP_NUM_THREADS, which launchers set, or as many as there are cores.
std::size_t threads_of(unsigned asked);

}  // namespace shoal::app
