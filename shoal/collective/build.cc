#include "shoal/collective/build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

using Build = std::function<Program(std::uint32_t ranks, std::uint32_t root)>;

struct Named {
  Collective collective;
  const char* name;
  Build build;
};

Build rootless(Program (*build)(std::uint32_t)) {
  return [build](std::uint32_t ranks, std::uint32_t) { return build(ranks); };
}

const std::vector<Named>& table() {
  static const std::vector<Named> all{
      {Collective::all_reduce, "direct", rootless(direct_all_reduce)},
      {Collective::all_reduce, "gather", rootless(gather_all_reduce)},
      {Collective::all_reduce, "chain", rootless(chain_all_reduce)},
      {Collective::all_reduce, "ring", rootless(ring_all_reduce)},
      {Collective::all_reduce, "recursive_doubling", rootless(recursive_doubling_all_reduce)},
      {Collective::all_reduce, "halving_doubling", rootless(halving_doubling_all_reduce)},
      {Collective::all_reduce, "swing", rootless(swing_all_reduce)},
      {Collective::all_reduce, "grid", rootless(nearest_grid_all_reduce)},
      {Collective::all_reduce, "double_binary_tree", rootless(double_binary_tree_all_reduce)},
      {Collective::reduce_scatter, "direct", rootless(direct_reduce_scatter)},
      {Collective::reduce_scatter, "ring", rootless(ring_reduce_scatter)},
      {Collective::all_gather, "direct", rootless(direct_all_gather)},
      {Collective::all_gather, "ring", rootless(ring_all_gather)},
      {Collective::broadcast, "flat", flat_broadcast},
      {Collective::broadcast, "binomial", binomial_broadcast},
      {Collective::broadcast, "chain", chain_broadcast},
      {Collective::reduce, "flat", flat_reduce},
      {Collective::reduce, "chain", chain_reduce},
      {Collective::gather, "flat", flat_gather},
      {Collective::scatter, "flat", flat_scatter},
      {Collective::all_to_all, "direct", rootless(direct_all_to_all)},
  };
  return all;
}

}  // namespace

Program build(Collective collective, const std::string& name, std::uint32_t ranks, std::uint32_t root) {
  for (const Named& entry : table()) {
    if (entry.collective == collective && entry.name == name) return entry.build(ranks, root);
  }
  throw Error(Code::invalid_argument, fmt::format("no program \"{}\" for {}", name, collective::name(collective)), "",
              fmt::format("one of {}", fmt::join(builder_names(collective), ", ")));
}

std::vector<std::string> builder_names(Collective collective) {
  std::vector<std::string> names;
  for (const Named& entry : table()) {
    if (entry.collective == collective) names.emplace_back(entry.name);
  }
  return names;
}

}  // namespace shoal::collective
