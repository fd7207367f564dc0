// Flags that say that a model is another program's topics of tokens (learn/topic/peer_state.h), for the verbs of `shoal topics` that take it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/command.h"
#include "shoal/learn/topic/peer_state.h"

namespace shoal::app {

struct StateFlags {
  std::string format, words_file;
  std::optional<std::uint32_t> topics;
  std::optional<double> alpha_sum, beta;

  bool on() const { return !format.empty(); }
  void check() const;  // throws Error{invalid_argument} for a flag that says nothing without --state
  learn::topic::PeerState read(const std::string& file) const;  // throws Error{invalid_argument}
};
void declare_state(CLI::App& app, StateFlags& flags);

}  // namespace shoal::app
