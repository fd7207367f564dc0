#include "shoal/sim/named_program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/forms.h"
#include "shoal/collective/known_network.h"
#include "shoal/collective/modes.h"
#include "shoal/core/error.h"

namespace shoal::sim {

namespace {

// Where members are lost the root of a rooted collective is another rank, and has to be there.
std::uint32_t root_among(const std::vector<std::uint32_t>& left, collective::Collective collective, std::uint32_t root,
                         const std::string& name) {
  if (!collective::has_root(collective)) return 0;
  const auto at = std::ranges::find(left, root);
  if (at == left.end())
    throw Error(Code::invalid_argument, "its root is lost, and nobody can take its place", "program " + name);
  return static_cast<std::uint32_t>(at - left.begin());
}

}  // namespace

NamedProgram named_program(collective::Collective collective, const std::string& name, std::uint32_t ranks, std::uint32_t root) {
  using Programs = std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<const collective::Program>>;  // by ranks and root
  const auto built = std::make_shared<Programs>();
  const auto find = [=](std::uint32_t how_many, std::uint32_t from) {
    auto& program = (*built)[{how_many, from}];
    if (!program) program = std::make_shared<const collective::Program>(collective::build(collective, name, how_many, from));
    return program;
  };
  const auto fewer = [=, rooted = root](const std::vector<std::uint32_t>& left) {
    return find(static_cast<std::uint32_t>(left.size()), root_among(left, collective, rooted, name));
  };
  return {find(ranks, root), fewer};
}

NamedProgram program_of_network(collective::Collective collective, const std::string& name, const topo::Topology& topology,
                                const std::vector<topo::Node>& hosts, std::uint32_t root) {
  const auto made = [=, whole = std::make_shared<const topo::Topology>(topology)](
                        const std::string& called, const std::vector<topo::Node>& members, std::uint32_t from) {
    const topo::Topology part = topo::restricted_to(*whole, members);
    const bool is_form =
        collective == collective::Collective::all_reduce && collective::is_form(called);  // which need no certificate here
    return std::make_shared<const collective::Program>(is_form ? collective::build_for(part, called)
                                                               : collective::program_for(part, collective, called, from));
  };
  using Programs = std::map<std::vector<std::uint32_t>, std::shared_ptr<const collective::Program>>;  // by who is left
  const auto remade = [=](const std::vector<std::uint32_t>& left) {
    const std::uint32_t from = root_among(left, collective, root, name);
    std::vector<topo::Node> members;
    for (const std::uint32_t rank : left) members.push_back(hosts[rank]);
    try {
      return made(name, members, from);
    } catch (const Error& error) {
      if (error.code() != Code::invalid_argument || name == collective::kTrees) throw;
    }
    return made(collective::kTrees, members, from);  // what is left has another form
  };
  const auto fewer = [=, known = std::make_shared<Programs>()](const std::vector<std::uint32_t>& left) {
    auto& program = (*known)[left];
    if (!program) program = remade(left);
    return program;
  };
  return {made(name, hosts, root), fewer};
}

}  // namespace shoal::sim
