#include "shoal/learn/topic/parallel.h"

#include <algorithm>
#include <string>

#include "shoal/core/error.h"
#include "shoal/learn/topic/memory.h"

namespace shoal::learn::topic {

Parallel parallel_of(std::string_view name) {
  if (name == "rotation") return Parallel::rotation;
  if (name == "data") return Parallel::data;
  throw Error(Code::invalid_argument, "\"" + std::string(name) + "\" is none", "--parallel", "auto, rotation or data");
}

ForeseenBytes foreseen(std::span<const std::uint64_t> frequencies, std::uint32_t topics, std::uint32_t members, std::uint32_t workers,
                       std::size_t before) {
  constexpr double packed = 2.4;  // bytes of an entry of a row, or of a change, as they were measured
  constexpr double rate = 10e6;   // tokens a second and thread, so soon
  if (members == 1) return {};
  double pairs = static_cast<double>(before), changes = 0, tokens = 0;
  for (const std::uint64_t frequency : frequencies) {
    const auto tokens_of = static_cast<double>(frequency);
    tokens += tokens_of;
    pairs += different_topics(tokens_of, topics);
    changes += 2 * different_topics(tokens_of / members, topics);  // topics that a member's tokens leave, and those to which they come
  }
  return {packed * pairs, packed * std::min(changes, pairs) * (members - 1), tokens / (rate * workers)};
}

}  // namespace shoal::learn::topic
