#include "shoal/data/number.h"

#include <algorithm>

namespace shoal::data {

std::string quote(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string quoted = "'" + std::string(text.substr(0, kMost));
  std::replace_if(quoted.begin(), quoted.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return quoted + (text.size() > kMost ? "...'" : "'");
}

}  // namespace shoal::data
