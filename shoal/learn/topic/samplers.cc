#include "shoal/learn/topic/samplers.h"

#include <array>
#include <string>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/learn/topic/exact.h"
#include "shoal/learn/topic/gibbs.h"
#include "shoal/learn/topic/light.h"
#include "shoal/learn/topic/warp.h"
#include "shoal/learn/topic/xy.h"

namespace shoal::learn::topic {

SamplerKind sampler_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, SamplerKind>, 6> kinds{{{"auto", SamplerKind::exact},
                                                                           {"exact", SamplerKind::exact},
                                                                           {"lightlda", SamplerKind::lightlda},
                                                                           {"warplda", SamplerKind::warplda},
                                                                           {"xy", SamplerKind::xy},
                                                                           {"gibbs", SamplerKind::gibbs}}};
  std::string names;
  for (const auto& [known, kind] : kinds) {
    if (name == known) return kind;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw Error(Code::invalid_argument, "there is no sampler \"" + std::string(name) + "\"", "", "there are " + names);
}

std::unique_ptr<Sampler> make_sampler(const Sampling& sampling, std::uint32_t topics, const Block& block) {
  switch (sampling.kind) {
    case SamplerKind::lightlda: return std::make_unique<Light>(topics, block, sampling.steps == 0 ? 2 : sampling.steps);
    case SamplerKind::warplda: return std::make_unique<Warp>(topics, block, sampling.steps == 0 ? 1 : sampling.steps);
    case SamplerKind::xy: return std::make_unique<XY>(topics);
    case SamplerKind::gibbs: return std::make_unique<Gibbs>(topics);
    case SamplerKind::exact: break;
  }
  return std::make_unique<Exact>(topics);
}

}  // namespace shoal::learn::topic
