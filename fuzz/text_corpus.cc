// Any bytes as texts or bags of words, in the format that the first byte says, by rules that the second says: a corpus that agrees with itself, or
// one line. Run fuzz_text_corpus [corpus folder].
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>

#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/text/mallet_state.h"
#include "shoal/text/source.h"

namespace {

// Counts of more than four digits only cost memory.
bool has_long_number(std::string_view text) {
  std::size_t digits = 0;
  for (const char c : text) {
    digits = std::isdigit(static_cast<unsigned char>(c)) != 0 ? digits + 1 : 0;
    if (digits > 4) return true;
  }
  return false;
}

void check(const shoal::text::Corpus& corpus) {
  const auto& documents = corpus.documents;
  if (documents.size() != corpus.names.size() || documents.size() != corpus.all_documents || documents.tokens() != corpus.all_tokens) std::abort();
  if (corpus.frequencies.size() != corpus.vocabulary.size()) std::abort();
  auto left = corpus.frequencies;
  for (std::size_t d = 0; d < documents.size(); ++d) {
    if (documents[d].empty()) std::abort();
    for (const std::uint32_t word : documents[d]) {
      if (word >= left.size() || left[word]-- == 0) std::abort();
    }
  }
  if (std::any_of(left.begin(), left.end(), [](std::uint64_t tokens) { return tokens != 0; })) std::abort();
}

}  // namespace

SHOAL_FUZZ(text_corpus, data, size) {
  using namespace shoal::text;
  if (size < 2) return 0;
  Source source;
  source.format = static_cast<Format>(data[0] % (static_cast<int>(Format::matrix_market) + 1));
  source.rules.pairs = static_cast<Pairs>(data[1] % 3);
  source.rules.pair_tokens = 2;
  if ((data[1] & 8) != 0) source.rules.min_documents = {2, false};
  if ((data[1] & 16) != 0) source.column = "2";
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  if (has_long_number(text)) return 0;
  const shoal::fuzz::MemoryFile file(text);
  source.files = {file.path()};
  try {
    check(read_corpus(source).first);
  } catch (const shoal::Error&) {
  }
  try {
    const MalletState state = read_mallet_state(source.files.front());
    check(state.corpus);
    if (state.topics.size() != state.corpus.documents.tokens()) std::abort();
  } catch (const shoal::Error&) {
  }
  return 0;
}
