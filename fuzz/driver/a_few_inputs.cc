// Goal: every fuzz target compiles, runs and ends well on a few inputs that are the same each time: none, and bytes that as text, as numbers or as a
// choice of form come some way into a reader. What else there is to find is for the fuzzer.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>

#include "fuzz/target.h"

int main() {
  std::string zeros(512, '\0'), ascending(512, '\0');
  std::iota(ascending.begin(), ascending.end(), '\0');
  const std::string inputs[] = {
      "", zeros, ascending, std::string(512, '\xff'), "\x02" + ascending, "{\"a\": [1, 2.5, \"b\"]}\n", "1 2 3\n4 5 6\n"};
  for (const shoal::fuzz::Target& target : shoal::fuzz::targets()) {
    std::printf("%s\n", target.name);
    std::fflush(stdout);  // before it ends the program
    for (const std::string& input : inputs) target.run(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
  return shoal::fuzz::targets().empty() ? 1 : 0;
}
