// Topics of tokens as other programs leave them, so that one judge scores all: MALLET's --output-state, WarpLDA's .z.estimate, LightLDA's block.N,
// tomotopy's model files. Others write MALLET's form easily. Threads: any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/learn/topic/likelihood.h"
#include "shoal/learn/topic/model.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

enum class StateFormat : std::uint8_t { mallet, warplda, lightlda, tomotopy };
StateFormat parse_state_format(std::string_view name);  // throws Error{invalid_argument} that lists all

// What the file does not say, or says otherwise than it should be taken.
struct StateOptions {
  std::filesystem::path words_file = {};  // the words by number, a line each; of MALLET's form and tomotopy's: which words there are. Empty: what is found beside
  std::optional<std::uint32_t> topics = {};  // how many there are
  std::optional<double> alpha_sum = {}, beta = {};
};

struct PeerState {
  Model model;
  text::Documents documents;  // in the model's numbers
  std::vector<std::string> names = {};  // of these, as the file has them, or their numbers from 1
  std::vector<Topic> topics;  // of documents.words()
};

// Throws Error{invalid_argument} for what is no such file, and where topics, alpha or beta are said nowhere.
PeerState read_state(const std::filesystem::path& file, StateFormat format, const StateOptions& options = {});

// Counts of tokens with these topics: of each word and topic together, of each topic.
void count_into(Model& model, std::span<const std::uint32_t> words, std::span<const Topic> topics);

LogLikelihood log_likelihood(const PeerState& state);  // all of it

}  // namespace shoal::learn::topic
