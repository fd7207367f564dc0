// Any bytes as a file, packed or not, and its lines: read within bounded memory or refused. Run fuzz_data_unpacked_file [corpus folder].
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "shoal/core/error.h"
#include "shoal/data/lines.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shoal::data;
  constexpr std::size_t kLongest = 100'000;
  const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    Lines lines({"/proc/self/fd/" + std::to_string(file)}, kLongest);
    std::uint64_t bytes = 0;
    for (std::string_view line; bytes < 10'000'000 && lines.next(line); bytes += line.size() + 1) {  // a few bytes may unpack to gigabytes
      if (line.size() > kLongest || line.find('\n') != line.npos || line.find('\0') != line.npos) std::abort();
    }
  } catch (const shoal::Error&) {
  }
  ::close(file);
  return 0;
}
