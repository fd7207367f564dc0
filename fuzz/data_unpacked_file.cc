// Any bytes as a file, packed or not, and its lines: read within bounded memory or refused. Run fuzz_data_unpacked_file [corpus folder].
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/data/lines.h"

SHOAL_FUZZ(data_unpacked_file, data, size) {
  using namespace shoal::data;
  constexpr std::size_t kLongest = 100'000;
  const shoal::fuzz::MemoryFile file({reinterpret_cast<const char*>(data), size});
  try {
    Lines lines({file.path()}, kLongest);
    std::uint64_t bytes = 0;
    for (std::string_view line; bytes < 10'000'000 && lines.next(line); bytes += line.size() + 1) {  // a few bytes may unpack to gigabytes
      if (line.size() > kLongest || line.find('\n') != line.npos || line.find('\0') != line.npos) std::abort();
    }
  } catch (const shoal::Error&) {
  }
  return 0;
}
