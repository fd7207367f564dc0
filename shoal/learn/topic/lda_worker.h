// What lda.h keeps of each thread; for its own files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "shoal/core/time.h"
#include "shoal/learn/topic/blocks.h"
#include "shoal/learn/topic/lda.h"
#include "shoal/learn/topic/sampler.h"
#include "shoal/learn/topic/totals.h"

namespace shoal::learn::topic {

struct Lda::Worker {
  Worker(std::uint32_t of_all, std::uint32_t of_member, std::uint32_t number_of_blocks, const std::filesystem::path& folder)
      : number(of_all), local(of_member), blocks(number_of_blocks, folder) {}
  const std::uint32_t number, local;
  Blocks blocks;
  std::unique_ptr<Sampler> sampler;
  std::optional<Totals> totals;
  Drawn drawn;
  Nanoseconds waited{};
};

}  // namespace shoal::learn::topic
