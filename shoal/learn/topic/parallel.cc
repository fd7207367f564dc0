#include "shoal/learn/topic/parallel.h"

#include <string>

#include "shoal/core/error.h"
#include "shoal/learn/topic/memory.h"

namespace shoal::learn::topic {

Parallel parallel_of(std::string_view name) {
  if (name == "rotation") return Parallel::rotation;
  if (name == "data") return Parallel::data;
  throw Error(Code::invalid_argument, "\"" + std::string(name) + "\" is none", "--parallel", "auto, rotation or data");
}

ForeseenBytes foreseen(std::span<const std::uint64_t> frequencies, std::uint32_t topics, std::uint32_t members) {
  constexpr double packed = 2.4, told = 4;  // bytes of an entry of a row, and of one that changed, as they were measured
  if (members == 1) return {};
  double pairs = 0, tokens = 0;
  for (const std::uint64_t frequency : frequencies) {
    const auto tokens_of = static_cast<double>(frequency);
    tokens += tokens_of;
    pairs += different_topics(tokens_of, topics);
  }
  // A changed token is one more of a topic and one less of another, told to each of the others.
  return {packed * pairs, 2 * told * tokens / members * (members - 1)};
}

}  // namespace shoal::learn::topic
