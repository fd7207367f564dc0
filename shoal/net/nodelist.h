// Slurm's short form of many host names: "n[01-03,7],login2" is n01, n02, n03, n7, login2. Several brackets in one name
// multiply, the last one fastest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shoal::net {

// At most 65536 names. Throws Error{invalid_argument} that repeats the text.
std::vector<std::string> expand_nodelist(std::string_view text);

}  // namespace shoal::net
