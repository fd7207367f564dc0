#include "shoal/core/unnamed_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

namespace shoal {

int open_unnamed(const std::filesystem::path& folder, const std::string& what) {
  std::string name = folder / (".shoal-" + what + "-XXXXXX");
  const int file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file >= 0) ::unlink(name.c_str());
  return file;
}

}  // namespace shoal
