#include "shoal/core/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "shoal/core/error.h"

namespace shoal {

std::string random_hex(std::size_t bytes) {
  std::string text;
  while (text.size() < 2 * bytes) {
    unsigned char byte = 0;
    if (::getrandom(&byte, 1, 0) == 1) {
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    } else if (errno != EINTR) {
      throw Error(Code::io, std::string("the kernel gives no random bytes: ") + std::strerror(errno));
    }
  }
  return text;
}

}  // namespace shoal
