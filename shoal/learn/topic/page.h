// The page of a model: its topics as a map, each one's words by relevance, documents that show it, and a search. One file that opens without a
// network. What is on it are the topics with most tokens, at most kMostShown, and of each the words that matter for some relevance
//
//   lambda ln phi_wk + (1 - lambda) ln(phi_wk / p_w)          (Sievert and Shirley, LDAvis, 2014)
//
// And pyldavis.json, which pyLDAvis.prepare(**arguments) takes. Threads: one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/learn/model_folder.h"
#include "shoal/learn/topic/mixture.h"
#include "shoal/learn/topic/model.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

constexpr std::size_t kMostShown = 500;

// The topics with most tokens, at most that many, in this order; none without tokens.
std::vector<Topic> largest(std::span<const std::uint64_t> totals, std::size_t most);

// Of each of some topics the documents that have most of it. Examples of members and threads come together. Memory: a few documents a topic.
class Examples {
 public:
  struct Document {
    std::string name, text;
    double share;
    friend bool operator==(const Document&, const Document&) = default;
  };

  // For those of `topics` topics: the ones that are shown.
  Examples(std::uint32_t topics, std::span<const Topic> of);
  // A document with these topics; its text are the first of its words. Documents with fewer than 8 tokens show nothing.
  void offer(std::string_view name, std::span<const std::uint32_t> words, const Mixture& mixture, const data::Names& vocabulary);
  void offer(Topic topic, Document document);
  const std::vector<Document>& of(Topic topic) const { return best_[topic]; }

  // Lines that can be sent, and offered to another member's.
  std::string lines() const;
  void offer_lines(std::string_view lines);

 private:
  bool takes(Topic topic, double share) const;
  std::vector<bool> wanted_;                 // by topic
  std::vector<std::vector<Document>> best_;  // by topic, the largest share first
};

// title: the model's name; about: a sentence on what it learnt from.
std::string page_of(const Model& model, const Examples& examples, const std::string& title, const std::string& about);

// pyLDAvis's arguments as JSON, for the 200 topics with most tokens, the 3,000 words that are frequent in them, and the first 2,000 documents;
// probabilities sum to 1 over what is there and none is 0, because pyLDAvis shows nothing where one is.
constexpr std::size_t kPyldavisTopics = 200, kPyldavisWords = 3000, kPyldavisDocuments = 2000;
std::string pyldavis_of(const Model& model, std::span<const Mixture> documents);

// index.html, called as the folder is, and pyldavis.json. Throws Error{io}.
void write_pages(const ModelFolder& folder, const Model& model, const Examples& examples, std::span<const Mixture> documents,
                 const std::string& about);

}  // namespace shoal::learn::topic
