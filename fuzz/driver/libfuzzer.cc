// A fuzz target as libFuzzer calls it.
#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return shoal::fuzz::targets().front().run(data, size);
}
