// shoal program build | show | verify | price: a collective as data, before any byte moves.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/command.h"
#include "shoal/collective/build.h"
#include "shoal/collective/certificate.h"
#include "shoal/collective/draw.h"
#include "shoal/collective/select.h"
#include "shoal/collective/show.h"
#include "shoal/collective/verify.h"
#include "shoal/core/aside.h"
#include "shoal/core/error.h"
#include "shoal/core/read_text.h"
#include "shoal/core/text.h"
#include "shoal/sim/best_program.h"
#include "shoal/sim/price.h"
#include "shoal/topo/facts.h"
#include "shoal/topo/import.h"

namespace shoal::app {
namespace {

using collective::Collective;
using collective::LinkModel;
using collective::Program;
using topo::Topology;

struct ProgramOptions {
  std::string collective, program, topology, svg, mode = "auto", out, size = "64MB", rate, alpha;
  std::optional<int> members;
  std::optional<std::uint32_t> root;
  bool json = false;
};

Collective collective_of(const ProgramOptions& options) {
  if (options.collective.empty()) return Collective::all_reduce;
  if (const auto collective = collective::collective_called(options.collective)) return *collective;
  std::vector<std::string> names;
  for (const Collective collective : collective::kCollectives) names.emplace_back(name(collective));
  refuse("there is no collective " + options.collective, "--collective", fmt::format("one of {}", fmt::join(names, ", ")));
}

std::uint32_t root_of(const ProgramOptions& options, Collective kind) {
  if (options.root && !has_root(kind)) refuse(fmt::format("{} has none", name(kind)), "--root", "broadcast, reduce, gather and scatter do");
  return options.root.value_or(0);
}

std::uint32_t ranks_of(const ProgramOptions& options) {
  if (!options.members) refuse(options.program.empty() ? "how many members?" : options.program + " is no file, and a program by name needs its members", "-n", "-n 4");
  if (*options.members < 1 || *options.members > 4096) refuse(fmt::format("a program has 1 to 4096 members, not {}", *options.members), "-n");
  return static_cast<std::uint32_t>(*options.members);
}

Topology network(const ProgramOptions& options) { return topo::import_topology(std::filesystem::path(options.topology)).topology; }

bool is_file(const ProgramOptions& options) {
  std::error_code none;
  return options.program.ends_with(".json") || (std::filesystem::exists(options.program, none) && !std::filesystem::is_directory(options.program, none));
}

// Out of a file, or by name for -n members.
Program program_of(const ProgramOptions& options) {
  if (!is_file(options)) {
    const Collective kind = collective_of(options);
    return build(kind, options.program, ranks_of(options), root_of(options, kind));
  }
  if (options.root) refuse("the program of a file has its own", "--root");
  Program program = collective::program_from_json(read_text(options.program), options.program);
  if (options.members && ranks_of(options) != program.ranks) {
    refuse(fmt::format("{} is a program of {}, not of {}", options.program, show_count(program.ranks, "members"), *options.members), "-n");
  }
  if (!options.collective.empty() && collective_of(options) != program.collective) {
    refuse(fmt::format("{} is a program of {}", options.program, name(program.collective)), "--collective");
  }
  return program;
}

int build_for(const ProgramOptions& options) {
  const Topology topology = network(options);
  const Collective kind = collective_of(options);
  const auto began = std::chrono::steady_clock::now();
  const sim::BestProgram made = sim::program_on(topology, kind, options.mode, root_of(options, kind), static_cast<double>(parse_size(options.size)),
                                               collective::ProgramCache::of_user());
  const Program& program = made.program;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  verify(program);
  const std::string file = options.out.empty() ? std::filesystem::path(options.topology).stem().string() + ".program.json" : options.out;
  write_aside(file, to_json(program) + "\n");
  std::string line = fmt::format("{}: {} of {}, {}", file, program.name, show_count(program.ranks, "members"), show_count(program.chunks, "chunks"));
  if (program.certificate) {
    const collective::Proof proof = check_certificate(program, topology);
    line += fmt::format(", {} of a bound of {} ({:.1f} %), {} the busiest", show_rate(topology, proof.rate), show_rate(topology, proof.bound),
                        100 * proof.efficiency(), topology.link_name(topology.links[proof.busiest]));
  }
  line += fmt::format(", in {}\n", show_seconds(took.count()));
  constexpr std::size_t kMostShown = 4;
  for (std::size_t k = 0; k < std::min(made.offers.size(), kMostShown); ++k) {
    const sim::Offered& offer = made.offers[k];
    line += fmt::format("{} {} {}{}", k == 0 ? options.size + ":" : ",", offer.name, offer.simulated ? "" : "at least ", show_seconds(offer.seconds));
  }
  say(line + (made.offers.empty() ? "" : "\n"));
  return 0;
}

int show(const ProgramOptions& options) {
  const auto program = program_of(options);
  if (!options.svg.empty() && options.json) refuse("has no use beside --svg", "--json");
  if (!options.svg.empty()) {
    verify(program);
    const std::optional<Topology> drawn_on = options.topology.empty() ? std::nullopt : std::optional(network(options));
    write_aside(options.svg, to_svg(program, drawn_on ? &*drawn_on : nullptr));
    return 0;
  }
  if (!options.topology.empty()) refuse("is of use with --svg", "--topology");
  fmt::print("{}\n", options.json ? to_json(program) : collective::show(program));
  return 0;
}

int check(const ProgramOptions& options) {
  const Program program = program_of(options);
  verify(program);
  say(fmt::format("{} {} on {}: every contribution once, no wait cycle, no hazard\n", program.name, name(program.collective),
                  show_count(program.ranks, "members")));
  if (options.topology.empty()) return 0;
  if (!has_bound(program.collective)) refuse(fmt::format("no bound is known of {}, so that its programs have no certificate", name(program.collective)), "--topology");
  const Topology topology = network(options);
  const collective::Proof proof = check_certificate(program, topology);
  say(fmt::format("certificate: {} by its ops, of a bound of {} by its prices: {:.2f} %\n", show_rate(topology, proof.rate),
                  show_rate(topology, proof.bound), 100 * proof.efficiency()));
  return 0;
}

// On a network: simulated, beside the bound.
int price_on(ProgramOptions options) {
  if (!options.rate.empty()) refuse("the rates are those of " + options.topology, "--rate");
  if (!options.alpha.empty()) refuse("the latencies are those of " + options.topology, "--alpha");
  const Topology topology = network(options);
  if (options.program.empty()) refuse("which program?", "--topology", "a file of `program build`, or a builder: ring");
  if (!is_file(options) && !options.members) options.members = static_cast<int>(topology.hosts.size());
  const Program program = program_of(options);
  verify(program);
  const double bytes = static_cast<double>(parse_size(options.size));
  const sim::ProgramPrice price = sim::price(program, topology, bytes);
  const bool is_bound = price.bound_seconds > 0;  // gather, scatter and all_to_all have none, nor has a member alone
  const auto if_bound = [&](double value) { return is_bound ? nlohmann::ordered_json(value) : nlohmann::ordered_json(); };
  if (options.json) {
    const nlohmann::ordered_json json{{"program", program.name}, {"collective", name(program.collective)}, {"members", program.ranks},
                                      {"bytes", bytes}, {"seconds", price.seconds}, {"bound_seconds", if_bound(price.bound_seconds)},
                                      {"efficiency", if_bound(price.efficiency())}, {"bottleneck", price.bottleneck}};
    say(json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    return 0;
  }
  const std::string bound = is_bound ? fmt::format(", the bound is {} ({:.1f} %)", show_seconds(price.bound_seconds), 100 * price.efficiency()) : "";
  say(fmt::format("{} of {} on {}: {}{}{}\n", program.name, show_size(bytes), topology.name.empty() ? options.topology : topology.name,
                  show_seconds(price.seconds), bound, price.bottleneck.empty() ? "" : "; busiest: " + price.bottleneck));
  return 0;
}

// One line a builder, or only the named one's.
int price(const ProgramOptions& options) {
  if (!options.topology.empty()) return price_on(options);
  const Collective kind = collective_of(options);
  if (options.program.ends_with(".json")) {
    throw Error(Code::invalid_argument, "a program of a file is priced on a network", "--topology", "name the network's file, too: --topology NET.json");
  }
  if (options.json) refuse("is of use with --topology", "--json");
  if (options.root) refuse("says nothing without --topology: a price is the same for every root", "--root");
  const std::uint32_t ranks = ranks_of(options);
  const double bytes = static_cast<double>(parse_size(options.size));
  LinkModel link;
  link.rate = parse_rate(options.rate.empty() ? "1gbit" : options.rate);
  link.alpha = std::chrono::duration<double>(parse_duration(options.alpha.empty() ? "100us" : options.alpha)).count();

  const auto names = options.program.empty() ? collective::builder_names(kind) : std::vector{options.program};
  const std::string chosen = collective::choose(kind, ranks, bytes, link);
  std::string table = fmt::format("{} of {} on {} members, {} a member, {} a step\n", name(kind), show_size(bytes), ranks,
                                  show_rate(link.rate), show_seconds(link.alpha));
  for (const auto& name : names) {
    const double seconds = collective::price(kind, name, ranks, bytes, link);
    table += fmt::format("{:<20} {:>10}{}\n", name, show_seconds(seconds), name == chosen ? "  cheapest" : "");
  }
  fmt::print("{}", table);
  return 0;
}

}  // namespace

Action declare_program(CLI::App& app) {
  app.require_subcommand(1);
  auto options = std::make_shared<ProgramOptions>();
  CLI::App* build_verb = app.add_subcommand("build", "make one for a network, as quick as can be");
  build_verb->add_option("topology", options->topology, "a topology (JSON, NCCL's XML, GML; see shoal topo)")->required();
  flag(*build_verb, "--collective", options->collective, "all_reduce (default), broadcast, reduce, all_gather, reduce_scatter");
  flag(*build_verb, "--mode", options->mode, "auto (default): the quickest of all that fit; trees: at most 16; exact: the bound itself; blink: as that paper; torus, mesh-ring, "
                             "row-pair, multi-ring, hierarchical, ring: for that form of network; or a builder: direct, ...");
  flag(*build_verb, "--size,--bytes", options->size, "of the whole vector that auto is to be quick with (default: 64MB)");
  flag(*build_verb, "--root", options->root, "rank, where the collective has one");
  flag(*build_verb, "-o,--out", options->out, "file (default: NAME.program.json here)");

  const auto verb = [&](const char* name, const char* summary, bool name_required) {
    CLI::App* made = app.add_subcommand(name, summary);
    made->add_option("program", options->program, "a file of `program build`, or with -n: ring, direct, chain, ...")->required(name_required);
    flag(*made, "-n,--members", options->members, "members, for a program by name");
    flag(*made, "--collective", options->collective, "all_reduce (default), broadcast, ...");
    flag(*made, "--root", options->root, "rank, where the collective has one");
    return made;
  };
  CLI::App* show_verb = verb("show", "the steps of every member", true);
  CLI::App* verify_verb = verb("verify", "prove that it does what its collective says", true);
  CLI::App* price_verb = verb("price", "seconds on idle links, of one program or of all", false);
  flag(*verify_verb, "--topology", options->topology, "prove its certificate for this network, too");
  flag(*price_verb, "--topology", options->topology, "on this network, simulated, beside the bound");
  flag(*show_verb, "--svg", options->svg, "a drawing to write instead: who sends what to whom, a panel for each chunk");
  flag(*show_verb, "--topology", options->topology, "with --svg: names and rates of this network");
  switch_on(*show_verb, "--json", options->json, "as data");
  switch_on(*price_verb, "--json", options->json, "with --topology: as data");
  flag(*price_verb, "--size,--bytes", options->size, "of the whole vector (default: 64MB)");
  flag(*price_verb, "--rate", options->rate, "of a member's link, each way (default: 1gbit)");
  flag(*price_verb, "--alpha", options->alpha, "cost of one step (default: 100us)");
  return [=](const Words&) {
    if (build_verb->parsed()) return build_for(*options);
    if (show_verb->parsed()) return show(*options);
    if (verify_verb->parsed()) return check(*options);
    return price(*options);
  };
}

}  // namespace shoal::app
