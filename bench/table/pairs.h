// Pairs of words that stand near each other, for counting: the work is the same beside any system.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace pairs {

using Ids = std::vector<std::uint32_t>;
constexpr std::uint32_t kEnd = 0xffffffff;  // of a document

inline Ids read_ids(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (!file) {
    std::fprintf(stderr, "cannot open %s\n", path.c_str());
    std::exit(2);
  }
  std::fseek(file, 0, SEEK_END);
  Ids ids(static_cast<std::size_t>(std::ftell(file)) / sizeof(std::uint32_t));
  std::rewind(file);
  ids.resize(std::fread(ids.data(), sizeof(std::uint32_t), ids.size(), file));
  std::fclose(file);
  return ids;
}

// A pair as a key: its smaller word above its larger one.
inline std::uint64_t pair_of(std::uint32_t a, std::uint32_t b) { return std::uint64_t{std::min(a, b)} << 32 | std::max(a, b); }

// Calls take(pairs), as they come in the text, for each batch of `most` documents that is this worker's: of every `workers` batches the
// worker-th. Two words are a pair if at most two others stand between them.
template <class Take>
void each_batch(const Ids& ids, std::size_t worker, std::size_t workers, Take take) {
  constexpr std::size_t most = 1000, window = 3;
  std::vector<std::uint64_t> found;
  std::size_t document = 0, begin = 0;
  const auto mine = [&] { return document / most % workers == worker; };
  for (std::size_t at = 0; at < ids.size(); ++at) {
    if (ids[at] != kEnd) {
      if (!mine()) continue;
      for (std::size_t other = at - std::min(at - begin, window); other < at; ++other) found.push_back(pair_of(ids[other], ids[at]));
      continue;
    }
    begin = at + 1;
    const bool was_mine = mine();
    if (++document % most != 0 && at + 1 != ids.size()) continue;
    if (!was_mine) continue;
    take(found);
    found.clear();
  }
}

// Each pair once, in order, and how often it was there. Sorts `found`.
template <class Count>
void tally(std::vector<std::uint64_t>& found, std::vector<std::uint64_t>& keys, std::vector<Count>& counts) {
  keys.clear();
  counts.clear();
  std::sort(found.begin(), found.end());
  for (const std::uint64_t pair : found) {
    if (keys.empty() || keys.back() != pair) {
      keys.push_back(pair);
      counts.push_back(0);
    }
    ++counts.back();
  }
}

// The oracle: by one thread, without any table.
template <class Count>
void recount(const Ids& ids, std::vector<std::uint64_t>& keys, std::vector<Count>& counts) {
  std::vector<std::uint64_t> all;
  each_batch(ids, 0, 1, [&](const std::vector<std::uint64_t>& found) { all.insert(all.end(), found.begin(), found.end()); });
  tally(all, keys, counts);
}

}  // namespace pairs
