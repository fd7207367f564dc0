#include "shoal/sim/named_program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/core/error.h"

namespace shoal::sim {

NamedProgram named_program(collective::Collective collective, const std::string& name, std::uint32_t ranks, std::uint32_t root) {
  using Programs = std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<const collective::Program>>;  // by ranks and root
  const auto built = std::make_shared<Programs>();
  const auto find = [=](std::uint32_t how_many, std::uint32_t from) {
    auto& program = (*built)[{how_many, from}];
    if (!program) program = std::make_shared<const collective::Program>(collective::build(collective, name, how_many, from));
    return program;
  };
  const auto fewer = [=, rooted = root](const std::vector<std::uint32_t>& left) {
    const auto at = std::ranges::find(left, rooted);
    const bool is_rooted = collective::has_root(collective);
    if (is_rooted && at == left.end()) throw Error(Code::invalid_argument, "its root is lost, and nobody can take its place", "program " + name);
    return find(static_cast<std::uint32_t>(left.size()), is_rooted ? static_cast<std::uint32_t>(at - left.begin()) : 0);
  };
  return {find(ranks, root), fewer};
}

}  // namespace shoal::sim
