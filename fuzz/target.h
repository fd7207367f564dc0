// A fuzz target: what is done with bytes that come from outside, which may be any. They are refused with an Error, or taken; whatever else comes of
// them (a crash, a report of a sanitizer, std::abort() where a target sees that something does not hold) is a defect of the reader.
//
//   SHOAL_FUZZ(topic_slice, data, size) { ...; return 0; }   in fuzz/topic_slice.cc
//
// The preset `fuzz` makes of each file a program of libFuzzer's, fuzz_topic_slice (libfuzzer.cc); a build for the address sanitizer puts all into
// one, which has each take a few inputs (a_few_inputs.cc), so that targets compile and run wherever tests do. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shoal::fuzz {

struct Target {
  const char* name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};

// Of this program.
inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

struct Registered {
  explicit Registered(const Target& target) { targets().push_back(target); }
};

}  // namespace shoal::fuzz

#define SHOAL_FUZZ(name, data, size)                                            \
  static int fuzz_##name(const std::uint8_t* data, std::size_t size);           \
  static const shoal::fuzz::Registered registered_##name({#name, fuzz_##name}); \
  static int fuzz_##name([[maybe_unused]] const std::uint8_t* data, [[maybe_unused]] std::size_t size)
