#include "shoal/text/seed_words.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/data/lines.h"
#include "shoal/data/number.h"

namespace shoal::text {

SeedWords read_seed_words(const std::filesystem::path& file, const data::Names& vocabulary, std::uint32_t topics) {
  SeedWords words;
  data::Lines lines({file});
  for (std::string_view line; lines.next(line);) {
    line = line.substr(0, line.find('#'));
    const char* const end = line.data() + line.size();
    const char* at = data::skip_spaces(line.data(), end);
    if (at == end) continue;
    std::uint64_t topic = 0;
    if (data::scan_index(at, end, topic) != data::Scan::fine || at == end || !data::is_space(*at)) {
      throw Error(Code::invalid_argument, data::quote(line) + " does not begin with a topic", lines.place(),
                  "a line is: topic, from 0, and its words");
    }
    if (topic >= topics) {
      throw Error(Code::invalid_argument, "there is no topic " + std::to_string(topic), lines.place(),
                  "topics count from 0 to " + std::to_string(topics - 1));
    }
    for (at = data::skip_spaces(at, end); at != end; at = data::skip_spaces(at, end)) {
      const char* const begin = at;
      at = std::find_if(at, end, data::is_space);
      const std::string_view word(begin, at);
      if (const auto known = vocabulary.find(word)) {
        words.seeds.push_back({static_cast<std::uint32_t>(topic), *known});
      } else if (std::find(words.unknown.begin(), words.unknown.end(), word) == words.unknown.end()) {
        words.unknown.emplace_back(word);
      }
    }
  }
  if (words.seeds.empty())
    throw Error(Code::invalid_argument, "has no word that the vocabulary has", file.string(), "a line is: topic, from 0, and its words");
  return words;
}

std::string sentence(const SeedWords& words) {
  std::set<std::uint32_t> topics;
  for (const auto& seed : words.seeds) topics.insert(seed.topic);
  std::string text = show_count(words.seeds.size(), "seed words") + " of " + show_count(topics.size(), "topics");
  for (std::size_t i = 0; i < words.unknown.size(); ++i) text += (i == 0 ? "; the vocabulary has no " : ", ") + data::quote(words.unknown[i]);
  return text;
}

}  // namespace shoal::text
