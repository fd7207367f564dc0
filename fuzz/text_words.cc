// Any bytes as a file of words, and as one of seed words for them: names that find each other and seeds of words and topics that there are, or one
// line. Run fuzz_text_words [corpus folder].
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/text/seed_words.h"
#include "shoal/text/words_file.h"

SHOAL_FUZZ(text_words, data, size) {
  using namespace shoal;
  const shoal::fuzz::MemoryFile file({reinterpret_cast<const char*>(data), size});
  const std::string path = file.path();
  data::Names known;
  for (const char* word : {"a", "b", "c"}) known.number(word);
  try {
    const data::Names names = text::read_words_file(path);
    for (std::uint32_t number = 0; number < names.size(); ++number) {
      if (names[number].empty() || names.find(names[number]) != number) std::abort();
    }
  } catch (const Error&) {
  }
  try {
    const text::SeedWords seeds = text::read_seed_words(path, known, 5);
    for (const auto& seed : seeds.seeds) {
      if (seed.topic >= 5 || seed.word >= known.size()) std::abort();
    }
    if (text::sentence(seeds).empty()) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
