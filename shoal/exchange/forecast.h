// What a model would do on a cluster, before anything runs: an iteration by each way, where it stands between computing and the links, how it
// scales, and which links would change the answer. Pure; a plan is made for each question by the same planner that runs use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/exchange/model.h"

namespace shoal::exchange {

struct Cluster {
  std::uint32_t members = 1;
  Machine machine;
  double samples = 32;     // of one member in one step
};

// An iteration by one choice. Seconds.
struct Iteration {
  ExchangePlan plan;
  double computing = 0;    // forward + backward, what a single machine needs
  double on_the_link = 0;  // all units one after another
  double seconds = 0;
  double bytes = 0;        // sent by a member
  std::uint32_t workers = 1;  // members that train: with servers:K the last K only add
  double speedup() const { return workers * computing / seconds; }  // over one machine
};
// Local steps: members wait for all means once in choice.rounds->steps steps; for a fragment's only as far as it takes longer than the steps
// until the next one's turn.
Iteration foresee(const Model& model, const Cluster& cluster, const Choice& choice);

// Seconds of an iteration with a parameter server beside each member (MXNet's; Jayarajan et al., MLSys 2019, 2): a tensor goes to the
// servers, is added there and comes back. slice_bytes 0: whole tensors, so that its three parts follow one another.
double seconds_by_servers(const Model& model, const Cluster& cluster, std::uint64_t slice_bytes, Order order);

// What stands in the way (research/sync.md 0).
enum class Regime : std::uint8_t {
  computing,  // the links are idle most of the time: nothing to gain
  order,      // less on the link than is computed: when it leaves decides
  bytes,      // more on the link than is computed: only fewer bytes help
};
Regime regime_of(const Iteration& dense);  // of an iteration whose gradients all go whole
const char* name(Regime regime);

struct Row {
  // Of the grammar (choice.h); "no overlap"; "whole, by servers", as MXNet's; "bound": of whole gradients, max(computing, link).
  std::string choice;
  bool exact = true;   // false: the mean is not that of the gradients, or not of every step
  double seconds = 0, bytes = 0, speedup = 0;
  double gain = 0;     // over DistributedDataParallel with its default buckets: how many times as fast
};
struct Scaling {
  std::uint32_t members = 1;
  double seconds = 0, speedup = 0;   // by the choice that was asked for
  double ddp_speedup = 0;
};
struct BreakEven {
  std::string what;    // what becomes true above this rate
  double rate = 0;     // bytes/s of a member; infinity: at no rate
};

struct Forecast {
  Iteration chosen;                  // by the choice that was asked for
  Regime regime = Regime::computing;
  std::vector<Row> rows;             // each way
  // Empty for a network that is known link by link, which is one of so many members with these rates.
  std::vector<Scaling> scaling;      // 1 to 64 members, each with as many samples; but for numbers that cannot go by a way that was asked for
  std::vector<BreakEven> break_even;
};
Forecast forecast(const Model& model, const Cluster& cluster, const Choice& choice);

}  // namespace shoal::exchange
