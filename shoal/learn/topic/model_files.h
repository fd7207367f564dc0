// A topic model in a folder (learn/model_folder.h), as shoal topics train leaves it and others find it:
//   model.safetensors  offsets, topics, counts: the words' rows, compressed by words as SciPy's csr_matrix has it; totals, alpha, beta
//   vocab.txt          the words, a line each, in the order of the rows
//   word_topic.txt     "word topic:count topic:count ...", the rows as text
//   topic-keys.txt     topic, alpha, its most frequent words; between tabs
//   doc_topics.tsv     the documents' topics, by document_line
//   index.html, pyldavis.json  pages to look at them (page.h)
// Each is there whole or not at all, and the model comes last. Threads: one.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "shoal/learn/model_folder.h"
#include "shoal/learn/topic/mixture.h"
#include "shoal/learn/topic/model.h"

namespace shoal::learn::topic {

constexpr const char* kLearner = "topics";  // in config.json, and the command's name

// All but doc_topics.tsv, into a folder that has been begun. Throws Error{io}.
void write_model(const ModelFolder& folder, const Model& model);
// Reads model.safetensors and vocab.txt. Throws Error{invalid_argument} saying in which way the folder is not as write_model left it.
Model read_model(const ModelFolder& folder);

// doc_topics.tsv has a line of column names, then a line a document: its name, tokens that the model knows, tokens that it does not, and
// "topic:share" by descending share. What is left of the shares to 1 is for the other topics, in proportion to alpha.
constexpr std::string_view kDocumentColumns = "document\ttokens\tunknown\ttopics\n";
std::string document_line(std::string_view name, const Mixture& mixture);
// Of `count` documents, whose lines line(document) gives. Throws Error{io}.
void write_documents(const ModelFolder& folder, std::size_t count, const std::function<std::string(std::size_t document)>& line);
constexpr double kSmallestShare = 0.01;   // of the topics that are named there
constexpr std::size_t kMostTopics = 20;

}  // namespace shoal::learn::topic
