// What `--plan`, SHOAL_PLAN and data_parallel(plan=) say, as a value: how the plan of a run is to be chosen. One grammar everywhere.
//
//   PLAN   = POLICY { "," GLOB "=" WAY } | GLOB "=" WAY { "," GLOB "=" WAY } | FILE
//   POLICY = "auto"            the least predicted iteration time, by exact ways; "" is "auto"
//          | "poseidon"        factors where they are fewer numbers (factor::fewer_numbers), else dense, in order of production
//          | "wfbp"            wait-free backpropagation: dense, in order of production, a barrier before the next forward pass
//          | "p3" [":" SIZE]   dense, what forward needs first goes first, in slices of SIZE (P3's 50,000 parameters are 200KB; default: those
//                              that fit the link)
//          | "ddp" [":" SIZE]  the buckets of PyTorch's DistributedDataParallel: 1 MiB first, then SIZE (default 25MB)
//          | "local" ":" H     local SGD: members step by themselves and average their parameters once in H steps
//          | "diloco" ":" H [":" FRAGMENTS [":" RATE [":" MOMENTUM]]]
//                              DiLoCo: the mean of H local steps is the gradient of an outer SGD with Nesterov momentum (default 0.7 and 0.9);
//                              several fragments of the model take turns, each on its way while the steps go on (default 1: members wait)
//          | "ps" [":" CONSISTENCY ["+" ENCODING]]
//                              a parameter server: parameters are rows of tables, servers step them with the gradients that come (default bsp;
//                              table/consistency.h); both travel as bf16 or int8, if that is said (table/encoding.h)
//          | WAY               every tensor that can goes by it
//   WAY    = a way's name with its arguments (way.h): "direct", "ring", "factors", "topk:0.001"
//   FILE   = what contains "/" or ends with ".json": a saved plan, replayed as it is
//
// A GLOB (* and ?) is matched against whole names of tensors; the last that matches decides, before the policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shoal/table/consistency.h"
#include "shoal/table/encoding.h"

namespace shoal::exchange {

// The way of a layer's weight whose sufficient factors travel in place of its gradient.
inline constexpr const char* kByFactors = "factors";
// The way of a table's gradient whose rows travel, and not those that are zero.
inline constexpr const char* kByRows = "rows";
// That of gradients which members that only serve help to add, before their number.
inline constexpr const char* kServers = "servers:";
inline std::string served_by(std::uint32_t servers) { return kServers + std::to_string(servers); }
inline std::uint32_t servers_of(const std::string& way) {  // 0 of any other
  return way.starts_with(kServers) ? static_cast<std::uint32_t>(std::stoul(way.substr(std::string(kServers).size()))) : 0;
}

// That of a layer which is divided among the members of groups, before the number of groups.
inline constexpr const char* kHybrid = "hybrid:";

// How members come together that step by themselves in between (Stich, ICLR 2019; DiLoCo: Douillard et al., arXiv 2311.08105; its fragments:
// arXiv 2501.18512). With rate 1 and momentum 0 everybody takes over the mean of all parameters.
struct Rounds {
  std::uint32_t steps = 1;  // of the optimizer, between two synchronisations of one fragment
  std::uint32_t fragments = 1;  // at most `steps`
  double rate = 1, momentum = 0;  // of the outer SGD

  // Whether a fragment's turn comes after so many steps since the last one's: they divide the round evenly.
  bool is_due(std::uint64_t step) const { return step * fragments / steps > (step - 1) * fragments / steps; }
};

struct Choice {
  enum class Policy : std::uint8_t { automatic, poseidon, wfbp, p3, ddp, local, diloco, ps, way };
  struct Override {
    std::string glob, way;
    bool matches(const std::string& tensor) const;
  };

  Policy policy = Policy::automatic;
  std::string way;                  // of Policy::way
  std::uint64_t bytes = 0;          // of p3 a slice (0: that of the link), of ddp a bucket
  std::optional<Rounds> rounds;     // of local and diloco
  std::optional<table::Consistency> served;  // of ps
  table::Encoding encoding = table::Encoding::none;  // of ps
  std::vector<Override> overrides;  // in the order in which they were written
  std::string file;                 // a saved plan; then nothing else holds

  // The way that an override gives this tensor; nullptr: the policy decides.
  const std::string* override_of(const std::string& tensor) const;
};

// Throws Error{invalid_argument} naming the part that is wrong; `where` is the flag, variable or argument that said it.
Choice parse_choice(const std::string& text, const std::string& where);
std::string to_text(const Choice& choice);  // parses to the same value

}  // namespace shoal::exchange
