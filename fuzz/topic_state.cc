// Any bytes as another program's topics of tokens, in the form that the first byte says: a state whose counts are those of its tokens, or one line.
// Run fuzz_topic_state [corpus folder].
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/learn/topic/peer_state.h"

namespace {

using namespace shoal;

void check(const learn::topic::PeerState& state) {
  const learn::topic::Model& model = state.model;
  if (state.documents.tokens() != state.topics.size() || state.names.size() != state.documents.size()) std::abort();
  if (model.words() != model.vocabulary.size() || model.topics() != model.prior.alpha.size()) std::abort();
  std::uint64_t tokens = 0, counted = 0;
  for (const std::uint64_t total : model.totals) tokens += total;
  for (const auto& [topic, count] : model.counts) {
    if (topic >= model.topics() || count == 0) std::abort();
    counted += count;
  }
  if (tokens != state.topics.size() || counted != tokens) std::abort();
  if (tokens != 0 && std::isnan(learn::topic::log_likelihood(state).total())) std::abort();
}

}  // namespace

SHOAL_FUZZ(topic_state, data, size) {
  using learn::topic::StateFormat;
  if (size < 1) return 0;
  const auto format = static_cast<StateFormat>(data[0] % 4);
  const fuzz::MemoryFile file({reinterpret_cast<const char*>(data + 1), size - 1}), words("a\nb\nc\nd\n");
  learn::topic::StateOptions options;
  if ((data[0] & 8) != 0 || format == StateFormat::warplda || format == StateFormat::lightlda) {
    options = {.words_file = words.path(), .topics = 7, .alpha_sum = 0.7, .beta = 0.01};
  }
  try {
    check(learn::topic::read_state(file.path(), format, options));
  } catch (const Error&) {
  }
  return 0;
}
