// What shoal topics train is asked, and how it makes it of members that may be lost on the way.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/recording.h"
#include "app/topics.h"
#include "app/topics_stream.h"
#include "shoal/learn/gather.h"
#include "shoal/learn/model_folder.h"
#include "shoal/learn/topic/lda.h"
#include "shoal/learn/topic/training.h"
#include "shoal/net/job.h"

namespace shoal::app {

struct TrainTopicsOptions {
  TextOptions texts;
  std::uint32_t topics = 100, threads = 0;
  std::string alpha, output, sampler = "auto", start = "random", parallel = "auto";
  std::string seed_words, memory, speed = "auto";
  std::vector<std::string> heldout;
  double alpha_sum = 5, beta = 0.01, test_share = 0.005;
  std::uint64_t seed = 1;
  unsigned staleness = 1, steps = 0;
  learn::topic::TrainingOptions training;
  StreamFlags stream;
  bool fixed_prior = false, symmetric_alpha = false, resume = false, json = false;

  learn::topic::Prior prior() const;
  std::string said_alpha() const { return alpha.empty() ? fmt::format("{} in all", alpha_sum) : alpha; }
};

// What a run does among the members that there are. When one is lost it does so again among those who are left, with all documents dealt anew, from
// the last sweep that was kept.
class Attempts {
 public:
  Attempts(const TrainTopicsOptions& options, const learn::topic::LdaOptions& how, learn::Json config, text::Corpus corpus, learn::ModelFolder& folder,
           const net::Place& place, Recording& recording)
      : options_(options), how_(how), config_(std::move(config)), digest_(corpus.digest), corpus_(std::move(corpus)), folder_(folder),
        members_(place.size), recording_(recording), first_(place.rank == 0) {}

  void make(net::Transport& among);
  bool first() const { return first_; }  // whether this member is the one that speaks and writes

 private:
  void read(const data::Share& share);
  data::Share deal(learn::Gather& gather, net::Transport& among);
  learn::topic::HeldOut hold_out(learn::Gather& gather, const data::Share& share);
  std::optional<learn::topic::Kept> kept(learn::topic::Checkpoints& checkpoints, const data::Share& share);
  learn::topic::ForeseenBytes foreseen(net::Rank members) const;
  void say(const std::string& line) const;

  const TrainTopicsOptions& options_;
  learn::topic::LdaOptions how_;
  learn::Json config_;
  const std::uint64_t digest_;
  text::Corpus corpus_;
  learn::ModelFolder& folder_;
  const net::Rank members_;  // as it began
  Recording& recording_;
  std::optional<std::uint32_t> speed_;  // of this member, as it was found before (speed.h)
  bool first_;
};

}  // namespace shoal::app
