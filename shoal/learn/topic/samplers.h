// The samplers by name. All draw from the same model, and leave exact counts; they differ in what a sweep costs and in how far it goes.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "shoal/learn/topic/sampler.h"

namespace shoal::learn::topic {

enum class SamplerKind : std::uint8_t { exact, lightlda, warplda, xy, gibbs };

struct Sampling {
  SamplerKind kind = SamplerKind::exact;
  unsigned steps = 0;  // of Metropolis-Hastings samplers, a token; 0: as many as is usual. lightlda: pairs (2); warplda: of each pass (1)
};

// Throws Error{invalid_argument} that names those there are. "auto" is exact.
SamplerKind sampler_of(std::string_view name);

// For the tokens of that block, which has its final documents; not kept.
std::unique_ptr<Sampler> make_sampler(const Sampling& sampling, std::uint32_t topics, const Block& block);

}  // namespace shoal::learn::topic
