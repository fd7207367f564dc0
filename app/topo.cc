// shoal topo show | import | generate | probe: networks as files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/topo.h"
#include "shoal/core/aside.h"
#include "shoal/core/text.h"
#include "shoal/topo/draw.h"
#include "shoal/topo/facts.h"
#include "shoal/topo/import.h"
#include "shoal/topo/named_form.h"

namespace shoal::app {
namespace {

using topo::Topology;

struct ShowTopologyOptions {
  std::string file, svg, edge_rate;
  bool json = false;
};

struct GenerateOptions {
  topo::NamedForm form;
  std::string out, name;
};

topo::Imported imported(const std::string& file, const std::string& edge_rate) {
  topo::ImportOptions options;
  if (!edge_rate.empty()) options.edge_rate = parse_rate(edge_rate);
  return topo::import_topology(std::filesystem::path(file), options);
}

void note(const topo::Imported& made, const std::string& file) {
  for (const auto& line : made.notes) fmt::print(stderr, "{}: {}\n", file, line);
}

std::string names(const Topology& topology, const std::vector<topo::Node>& hosts) {
  constexpr std::size_t kMost = 6;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(hosts.size(), kMost); ++i) shown.push_back(topology.hosts[hosts[i]]);
  if (hosts.size() > kMost) shown.emplace_back("...");
  return fmt::format("{}", fmt::join(shown, ", "));
}

// The first few with a rate from `least` to `most`, of `count`.
std::string some_links(const Topology& topology, double least, double most, std::size_t count) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> some;
  for (const topo::Link& link : topology.links) {
    if (link.rate >= least && link.rate <= most && some.size() < kMost)
      some.push_back(topology.link_name(link));
  }
  return fmt::format("{}{}", fmt::join(some, ", "), count > kMost ? ", ..." : "");
}

std::string facts_text(const Topology& topology, const topo::Facts& facts) {
  constexpr std::size_t kMostLines = 12;
  std::string text = fmt::format("{}: {}\n", topology.name.empty() ? "topology" : topology.name, counts(topology));
  if (!topology.description.empty()) text += topology.description + "\n";
  std::size_t rows = 0;
  for (auto at = facts.links_by_rate.begin();
       at != facts.links_by_rate.end();) {  // the slowest first; what is shown alike is one
    if (rows++ == kMostLines) {
      text += "  ...\n";
      break;
    }
    const double least = at->first;
    const std::string shown = show_rate(topology, least);
    double most = least;
    std::size_t count = 0;
    for (; at != facts.links_by_rate.end() && show_rate(topology, at->first) == shown; ++at) {
      most = at->first;
      count += at->second;
    }
    text += fmt::format("  {} of {}: {}\n", show_count(count, "links"), shown, some_links(topology, least, most, count));
  }
  if (facts.components.hosts.size() > 1) text += "not connected: " + describe(facts.components, topology) + "\n";
  text += facts.diameter           ? fmt::format("diameter: {}\n", show_count(*facts.diameter, "hops"))
          : facts.diameter_counted ? "diameter: none, not every host reaches every other\n"
                                   : fmt::format("diameter: not counted above {} hosts\n", topo::kMostCounted);
  std::size_t shown = 0;
  for (const topo::Neck& neck : facts.necks) {
    if (shown++ == kMostLines) {
      text += fmt::format("and {} more\n", show_count(facts.necks.size() - kMostLines, "shared bottlenecks"));
      break;
    }
    const double rate = std::min(neck.out, neck.in);
    text += fmt::format("shared bottleneck: {} - {}, {} for {} ({}): {} each\n", topology.node_name(neck.inner),
                        topology.node_name(neck.outer), show_rate(topology, rate), show_count(neck.hosts.size(), "hosts"),
                        names(topology, neck.hosts), show_rate(topology, rate / static_cast<double>(neck.hosts.size())));
  }
  return text;
}

std::string facts_json(const Topology& topology, const topo::Facts& facts) {
  nlohmann::ordered_json json{{"name", topology.name},
                              {"hosts", topology.hosts.size()},
                              {"switches", topology.switches.size()},
                              {"links", topology.links.size()},
                              {"rate_unit", topology.relative ? "link units" : "bytes/s"}};
  for (const auto& [rate, count] : facts.links_by_rate) json["links_by_rate"].push_back({{"rate", rate}, {"links", count}});
  json["components"] = nlohmann::ordered_json::array();
  for (const auto& hosts : facts.components.hosts) json["components"].push_back(hosts.size());
  json["diameter_hops"] = facts.diameter ? nlohmann::ordered_json(*facts.diameter) : nlohmann::ordered_json();
  std::vector<const topo::Neck*> tightest(topology.hosts.size());
  for (const topo::Neck& neck : facts.necks) {
    for (const topo::Node host : neck.hosts) tightest[host] = tightest[host] != nullptr ? tightest[host] : &neck;
  }
  json["by_host"] = nlohmann::ordered_json::array();
  for (topo::Node host = 0; host < topology.hosts.size(); ++host) {
    nlohmann::ordered_json entry{{"host", topology.hosts[host]}, {"out", facts.out[host]}, {"in", facts.in[host]}};
    if (const topo::Neck* neck = tightest[host]) {
      entry["shared_bottleneck"] = {{"from", topology.node_name(neck->inner)},
                                    {"to", topology.node_name(neck->outer)},
                                    {"out", neck->out},
                                    {"in", neck->in},
                                    {"hosts", neck->hosts.size()}};
    }
    json["by_host"].push_back(std::move(entry));
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int show(const ShowTopologyOptions& options) {
  const auto made = imported(options.file, options.edge_rate);
  note(made, options.file);
  if (!options.svg.empty()) write_aside(options.svg, topo::to_svg(made.topology));
  const topo::Facts facts = topo::facts(made.topology);
  const std::string text = options.json ? facts_json(made.topology, facts) : facts_text(made.topology, facts);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

int import(const ShowTopologyOptions& options, const std::string& out) {
  const auto made = imported(options.file, options.edge_rate);
  note(made, options.file);
  write_topology(made.topology, out);
  fmt::print("{}: {}\n", out, counts(made.topology));
  return 0;
}

int generate(const GenerateOptions& options) {
  Topology topology = topo::generate(options.form);
  if (!options.name.empty()) topology.name = options.name;
  if (options.out.empty()) {
    fmt::print("{}", to_json(topology));
    return 0;
  }
  write_topology(topology, options.out);
  fmt::print("{}: {}\n", options.out, counts(topology));
  return 0;
}

}  // namespace

std::string counts(const Topology& topology) {
  const std::size_t switches = topology.switches.size();
  return fmt::format("{}, {}, {}", show_count(topology.hosts.size(), "hosts"),
                     switches == 0   ? "no switch"
                     : switches == 1 ? "1 switch"
                                     : show_count(switches, "switches"),
                     show_count(topology.links.size(), "links"));
}

std::string to_text(const Topology& topology) { return facts_text(topology, topo::facts(topology)); }

Action declare_topo(CLI::App& app) {
  app.require_subcommand(1);
  auto shown = std::make_shared<ShowTopologyOptions>();
  auto made = std::make_shared<GenerateOptions>();
  const auto reads = [&](const char* name, const char* summary) {
    CLI::App* verb = app.add_subcommand(name, summary);
    verb->add_option("file", shown->file, "Shoal's JSON, NCCL topology XML or GML")->required();
    flag(*verb, "--edge-rate", shown->edge_rate, "of GML edges that name no speed: 1gbit");
    return verb;
  };
  CLI::App* show_verb = reads("show", "what a network is like");
  flag(*show_verb, "--svg", shown->svg, "a drawing to write");
  switch_on(*show_verb, "--json", shown->json, "for machines");
  CLI::App* import_verb = reads("import", "turn NCCL topology XML or GML into Shoal's JSON");
  flag(*import_verb, "-o,--out", made->out, "the file to write")->required();

  CLI::App* generate_verb = app.add_subcommand("generate", "make a network of regular form");
  offer(*generate_verb->add_option("form", made->form.name, "star, fattree, sites, torus or mesh")->required(),
        {"star", "fattree", "sites", "torus", "mesh"});
  generate_verb->add_option("size", made->form.size, "8 hosts; 4x8: racks or sites x hosts; 32x32: chips");
  flag(*generate_verb, "--rate", made->form.rate, "of a host's link, each way (default: link units)");
  flag(*generate_verb, "--rates", made->form.rates, "of a star's links: 10gbit,1gbit,1gbit");
  flag(*generate_verb, "--uplink", made->form.uplink, "rate of a rack's uplink or of the line between two sites (default: --rate)");
  flag(*generate_verb, "--latency", made->form.latency, "of a host's link: 50us");
  flag(*generate_verb, "--uplink-latency", made->form.uplink_latency, "of an uplink or a line: 20ms");
  flag(*generate_verb, "--wrap", made->form.wrap, "dimensions that close, from 1: 2 or 1,2 (default: a torus's all, a mesh's none)");
  flag(*generate_verb, "--dead", made->form.dead, "a dead chip 3,5 or block 2,2:2x4; may be repeated");
  flag(*generate_verb, "--name", made->name, "of the network");
  flag(*generate_verb, "-o,--out", made->out, "the file to write (default: printed)");

  CLI::App* probe_verb = app.add_subcommand("probe", "find the network between live members");
  const Action probe = declare_topo_probe(*probe_verb);

  return [=](const Words& words) {
    if (probe_verb->parsed()) return probe(words);
    if (show_verb->parsed()) return show(*shown);
    if (import_verb->parsed()) return import(*shown, made->out);
    return generate(*made);
  };
}

}  // namespace shoal::app
