// shoal topics train --method stream: its own flags, and the training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "app/command.h"
#include "app/topics_text.h"
#include "shoal/learn/topic/stream.h"

namespace shoal::app {

struct StreamFlags {
  std::string method = "gibbs";
  std::uint64_t batch = 2000, documents = 1'000'000;
  double tau0 = 1, kappa = 0.5;

  bool on() const { return method == "stream"; }
  // Throws Error{invalid_argument} for a method that is none, and for flags that the method does not have.
  void check(const CLI::App& app) const;
};
void declare_stream(CLI::App& app, StreamFlags& flags);

struct StreamTraining {
  TextOptions texts;  // "-": standard input
  StreamFlags flags;
  learn::topic::StreamOptions how;
  std::string alpha;  // as it was asked for
  std::filesystem::path folder;
  unsigned look_every, keep_every;  // batches; 0: never
  bool resume, json;
};
int train_stream(const StreamTraining& training);

}  // namespace shoal::app
