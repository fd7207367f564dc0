// Programs for networks, over the texts in which they and networks are written; python/shoal/program.py makes them values.
#include <pybind11/stl.h>

#include <limits>

#include "bindings.h"
#include "shoal/collective/build.h"
#include "shoal/collective/certificate.h"
#include "shoal/collective/draw.h"
#include "shoal/collective/show.h"
#include "shoal/collective/verify.h"
#include "shoal/core/read_text.h"
#include "shoal/sim/best_program.h"
#include "shoal/sim/price.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

using py::literals::operator""_a;

collective::Collective called(const std::string& text) {
  if (const auto collective = collective::collective_called(text)) return *collective;
  throw Error(Code::invalid_argument, "there is no collective " + text, "collective", "all_reduce, broadcast, reduce, all_gather, ...");
}

std::string read_program(const std::string& file) {
  return to_json(collective::program_from_json(read_text(file), file));
}

std::string build(const std::string& network, const std::string& collective, const std::string& mode, std::int64_t root, double bytes) {
  const topo::Topology topology = topo::topology_from_json(network);
  if (root < 0 || root > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(Code::invalid_argument, "root " + std::to_string(root) + " of " + std::to_string(topology.hosts.size()) + " hosts");
  }
  return to_json(sim::program_on(topology, called(collective), mode, static_cast<std::uint32_t>(root), bytes, collective::ProgramCache::of_user()).program);
}

py::dict describe(const std::string& text) {
  const collective::Program program = collective::program_from_json(text);
  py::dict said("name"_a = program.name, "collective"_a = name(program.collective), "ranks"_a = program.ranks, "chunks"_a = program.chunks);
  said["shares"] = program.shares;
  return said;
}

// With names and rates of a network, if one is given.
std::string draw(const std::string& text, const std::optional<std::string>& network) {
  const collective::Program program = collective::program_from_json(text);
  collective::verify(program);
  if (!network) return to_svg(program);
  const topo::Topology on = topo::topology_from_json(*network);
  return to_svg(program, &on);
}

py::dict verify(const std::string& text, const std::optional<std::string>& network) {
  const collective::Program program = collective::program_from_json(text);
  py::dict said("in_place"_a = collective::verify(program).in_place());
  if (!network) return said;
  const collective::Proof proof = check_certificate(program, topo::topology_from_json(*network));
  said["rate"] = proof.rate;
  said["bound"] = proof.bound;
  said["efficiency"] = proof.efficiency();
  return said;
}

py::dict price(const std::string& text, const std::string& network, double bytes) {
  collective::Program program = collective::program_from_json(text);
  collective::verify(program);
  const sim::ProgramPrice price = sim::price(std::move(program), topo::topology_from_json(network), bytes);
  const auto if_bound = [&](double value) { return price.bound_seconds > 0 ? py::object(py::float_(value)) : py::object(py::none()); };
  return py::dict("seconds"_a = price.seconds, "bound_seconds"_a = if_bound(price.bound_seconds), "efficiency"_a = if_bound(price.efficiency()),
                  "bottleneck"_a = price.bottleneck);
}

}  // namespace

void bind_programs(py::module_& module) {
  module.def("read_program", &read_program, "file"_a);
  module.def("program_build", &build, "network"_a, "collective"_a, "mode"_a, "root"_a, "bytes"_a);
  module.def("program_describe", &describe, "program"_a);
  module.def("program_show", [](const std::string& text) { return show(collective::program_from_json(text)); }, "program"_a);
  module.def("program_draw", &draw, "program"_a, "network"_a);
  module.def("program_verify", &verify, "program"_a, "network"_a);
  module.def("program_price", &price, "program"_a, "network"_a, "bytes"_a);
}

}  // namespace shoal::python
