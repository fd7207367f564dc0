#include "shoal/topo/named_form.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/topo/generate.h"

namespace shoal::topo {
namespace {

// "8x4" or "2,2" -> numbers. flag: what is wrong if they are none.
std::vector<std::uint32_t> numbers(const std::string& text, char between, const std::string& flag, const std::string& example) {
  std::vector<std::uint32_t> found;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::uint32_t number = 0;
    const auto [next, wrong] = std::from_chars(at, end, number);
    if (wrong != std::errc() || (next != end && *next != between)) refuse("\"" + text + "\" is not like " + example, flag);
    found.push_back(number);
    if (next == end) return found;
    at = next + 1;
  }
}

std::vector<std::uint32_t> sizes(const NamedForm& form, std::size_t count) {
  const std::string example = count == 1 ? "8" : "4x8";
  if (form.size.empty()) {
    refuse(fmt::format("{} of which size?", form.name), "size", fmt::format("shoal topo generate {} {}", form.name, example));
  }
  const auto found = numbers(form.size, 'x', "size", example);
  if (count != 0 && found.size() != count)
    refuse(fmt::format("\"{}\" has {} sizes, {} is like {}", form.size, found.size(), form.name, example), "size");
  return found;
}

Topology make_grid(const NamedForm& form, Wire wire) {
  Grid grid{sizes(form, 0), {}, wire, {}};
  grid.wraps.assign(grid.sizes.size(), form.name == "torus" && form.wrap.empty());
  if (!form.wrap.empty()) {
    for (const std::uint32_t dimension : numbers(form.wrap, ',', "--wrap", "2 or 1,3")) {
      if (dimension == 0 || dimension > grid.sizes.size())
        refuse(fmt::format("there is no dimension {} of {}", dimension, grid.sizes.size()), "--wrap");
      grid.wraps[dimension - 1] = true;
    }
  }
  for (const auto& dead : form.dead) {
    const auto colon = dead.find(':');
    Block block{numbers(dead.substr(0, colon), ',', "--dead", "3,5 or 2,2:2x4"),
                std::vector<std::uint32_t>(grid.sizes.size(), 1)};
    if (colon != std::string::npos) block.extent = numbers(dead.substr(colon + 1), 'x', "--dead", "3,5 or 2,2:2x4");
    grid.dead.push_back(std::move(block));
  }
  return topo::grid(grid);
}

// Flags that say nothing of this form: nobody means them to be passed over.
void check_flags(const NamedForm& form) {
  const bool is_star = form.name == "star", is_grid = form.name == "torus" || form.name == "mesh";
  const auto only_for = [&](bool fits, bool given, const char* flag, const char* forms) {
    if (given && !fits) refuse(fmt::format("is of {}, not of {}", forms, form.name), flag);
  };
  only_for(is_grid, !form.wrap.empty(), "--wrap", "torus and mesh");
  only_for(is_grid, !form.dead.empty(), "--dead", "torus and mesh");
  only_for(is_star, !form.rates.empty(), "--rates", "star");
  only_for(!is_star && !is_grid, !form.uplink.empty(), "--uplink", "fattree and sites");
  only_for(!is_star && !is_grid, !form.uplink_latency.empty(), "--uplink-latency", "fattree and sites");
  if (!form.rates.empty() && !form.rate.empty()) refuse("has no use beside --rates, which has every host's", "--rate");
}

std::vector<Wire> star_wires(const NamedForm& form, Wire wire) {
  if (form.rates.empty()) return std::vector<Wire>(sizes(form, 1)[0], wire);
  std::vector<Wire> wires;
  for (std::size_t at = 0; at < form.rates.size();) {
    const std::size_t comma = std::min(form.rates.find(',', at), form.rates.size());
    wires.push_back({parse_rate(form.rates.substr(at, comma - at)), wire.latency});
    at = comma + 1;
  }
  if (!form.size.empty() && sizes(form, 1)[0] != wires.size()) {
    refuse(fmt::format("has {} for {} hosts", show_count(wires.size(), "rates"), form.size), "--rates",
           "one for each, or --rate for all");
  }
  return wires;
}

Topology made(const NamedForm& form) {
  Wire wire, second;
  if (!form.rate.empty()) wire.rate = parse_rate(form.rate);
  if (!form.latency.empty()) wire.latency = parse_duration(form.latency);
  second.rate = form.uplink.empty() ? wire.rate : parse_rate(form.uplink);
  if (!form.uplink_latency.empty()) second.latency = parse_duration(form.uplink_latency);
  if (form.name == "star") return star(star_wires(form, wire));
  if (form.name == "fattree" || form.name == "sites") {
    const auto counts = sizes(form, 2);
    return form.name == "fattree" ? fat_tree(counts[0], counts[1], wire, second)
                                  : multi_site(counts[0], counts[1], wire, second);
  }
  if (form.name == "torus" || form.name == "mesh") return make_grid(form, wire);
  refuse("there is no " + form.name, "form", "star, fattree, sites, torus or mesh");
}

}  // namespace

Topology generate(const NamedForm& form) {
  check_flags(form);
  Topology topology = made(form);
  topology.relative = form.rate.empty() && form.rates.empty();
  if (topology.relative && !form.uplink.empty()) refuse("needs --rate, too", "--uplink");
  return topology;
}

}  // namespace shoal::topo
