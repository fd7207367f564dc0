// MALLET's --output-state: tokens with their topics.
//
//   #doc source pos typeindex type topic
//   #alpha : 0.1 0.1 ...
//   #beta : 0.01
//   0 name 0 0 word 3
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "shoal/data/lines.h"
#include "shoal/data/read.h"
#include "shoal/text/corpus.h"
#include "shoal/text/gathering.h"
#include "shoal/text/source.h"

namespace shoal::text {

struct MalletToken {
  std::uint64_t document = 0, position = 0;
  std::string_view source, word;
  std::uint32_t topic = 0;
};
// A line below the header. Pure.
data::Verdict parse_mallet_token(std::string_view line, MalletToken& token);

struct MalletPrior {
  std::vector<double> alpha;  // by topic; empty where the file does not say
  double beta = 0;            // 0 where the file does not say
};
// Gives each token's topic, document by document, to `topics` if that is not null.
MalletPrior read_mallet_state(data::Lines& lines, Gathering& gathering, std::vector<std::uint32_t>* topics = nullptr);

// A whole state: nothing is dropped. Throws Error{invalid_argument} for what is none ("file:line: what (hint)").
struct MalletState {
  Corpus corpus;
  std::vector<std::uint32_t> topics;  // of corpus.documents.words()
  MalletPrior prior;
  Reading reading;
};
MalletState read_mallet_state(const std::filesystem::path& file);

}  // namespace shoal::text
