// What bags of words are written in: whole numbers between spaces, and "word:count". Threads: pure functions.
#pragma once

#include <cstdint>

#include "shoal/data/number.h"

namespace shoal::text {

// The whole number behind spaces at the front of [at, end); `at` moves behind it. False where there is none.
inline bool take_number(const char*& at, const char* end, std::uint64_t& number) {
  at = data::skip_spaces(at, end);
  return data::scan_index(at, end, number) == data::Scan::fine;
}

struct WordCount {
  std::uint64_t word = 0, count = 0;
};

// The same for two with a colon between them and a space, or nothing, behind.
inline bool take_word_count(const char*& at, const char* end, WordCount& pair) {
  if (!take_number(at, end, pair.word) || at == end || *at != ':') return false;
  ++at;
  return data::scan_index(at, end, pair.count) == data::Scan::fine && (at == end || data::is_space(*at));
}

}  // namespace shoal::text
