// tomotopy's model files, LDAModel.save("model.bin"), of versions 0.6 to 0.14 and as long as they stay as they are: what of one a judge needs.
//
//   "LDA\0\0" "one\0\0"                  the model, and that tokens weigh one each
//   tags: dict, vocabCf, vocabDf, realV, globalStep, extra
//   tags: vocabWeights, alpha, alphas, eta, K, etaByWord, burnIn, optimInterval
//   tokens of each topic; of each topic and word, words' columns one after another: 32-bit rows and columns, then 32-bit numbers
//   32-bit number of documents; of each
//     tags: weight, words, wOrder, ...
//     tags: Zs, wordWeights              16 bits a token, 0xFFFF for one of a word that was left out
//
//   a tag: "TPTK", version, 64-bit size of what follows it with itself, 32-bit length of the name, 32-bit number of tags behind it, name, data
//
// Words from realV on were left out of the model, as too rare or too frequent, and so are their tokens here. Threads: any.
#pragma once

#include <filesystem>
#include <vector>

#include "shoal/learn/topic/model.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

struct TomotopyFile {
  Prior prior;
  data::Names vocabulary;
  text::Documents documents;  // without tokens that have no topic
  std::vector<Topic> topics;  // of documents.words()
};

// Throws Error{invalid_argument} for what is none, for one without documents, and for what this judge cannot score: words that weigh more or less than
// one, a prior of single words.
TomotopyFile read_tomotopy_file(const std::filesystem::path& file);

}  // namespace shoal::learn::topic
