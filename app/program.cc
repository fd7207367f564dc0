// shoal program show | verify | price: a collective as data, before any byte moves.
#include <fmt/format.h>

#include "app/command.h"
#include "shoal/collective/build.h"
#include "shoal/collective/select.h"
#include "shoal/collective/show.h"
#include "shoal/collective/verify.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::app {
namespace {

using collective::Collective;
using collective::LinkModel;

struct ProgramOptions {
  std::string collective = "all_reduce", name, size = "64MB", rate = "1gbit", alpha = "100us";
  int members = 0;
  std::uint32_t root = 0;
  bool json = false;
};

constexpr std::pair<const char*, Collective> collectives[] = {
    {"all_reduce", Collective::all_reduce}, {"reduce_scatter", Collective::reduce_scatter},
    {"all_gather", Collective::all_gather}, {"broadcast", Collective::broadcast},
    {"reduce", Collective::reduce},         {"gather", Collective::gather},
    {"scatter", Collective::scatter},       {"all_to_all", Collective::all_to_all},
};

Collective collective_named(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, value] : collectives) {
    if (known == name) return value;
    names.push_back(known);
  }
  throw Error(Code::invalid_argument, "there is no collective " + name, "--collective",
              fmt::format("one of {}", fmt::join(names, ", ")));
}

std::uint32_t ranks_of(const ProgramOptions& options) {
  if (options.members < 1 || options.members > 4096) {
    throw Error(Code::invalid_argument,
                fmt::format("a program has 1 to 4096 members, not {}", options.members), "-n");
  }
  return static_cast<std::uint32_t>(options.members);
}

collective::Program build(const ProgramOptions& options) {
  return collective::build(collective_named(options.collective), options.name, ranks_of(options),
                           options.root);
}

int show(const ProgramOptions& options) {
  const auto program = build(options);
  fmt::print("{}\n", options.json ? to_json(program) : collective::show(program));
  return 0;
}

int check(const ProgramOptions& options) {
  const auto program = build(options);
  verify(program);
  fmt::print("{} {} on {} members: every contribution once, no wait cycle, no hazard\n", options.name,
             options.collective, program.ranks);
  return 0;
}

// One line a builder, or only the named one's.
int price(const ProgramOptions& options) {
  const Collective kind = collective_named(options.collective);
  const std::uint32_t ranks = ranks_of(options);
  const double bytes = static_cast<double>(parse_size(options.size));
  LinkModel link;
  link.rate = parse_rate(options.rate);
  link.alpha = std::chrono::duration<double>(parse_duration(options.alpha)).count();

  const auto names = options.name.empty() ? collective::builder_names(kind) : std::vector{options.name};
  const std::string chosen = collective::choose(kind, ranks, bytes, link);
  std::string table = fmt::format("{} of {} on {} members, {} a member, {} a step\n", options.collective,
                                  show_size(bytes), ranks, show_rate(link.rate), show_seconds(link.alpha));
  for (const auto& name : names) {
    const double seconds = collective::price(kind, name, ranks, bytes, link);
    table +=
        fmt::format("{:<20} {:>10}{}\n", name, show_seconds(seconds), name == chosen ? "  cheapest" : "");
  }
  fmt::print("{}", table);
  return 0;
}

}  // namespace

Action declare_program(CLI::App& app) {
  app.require_subcommand(1);
  auto options = std::make_shared<ProgramOptions>();
  const auto verb = [&](const char* name, const char* summary, bool name_required) {
    CLI::App* made = app.add_subcommand(name, summary);
    made->add_option("name", options->name, "ring, direct, chain, ...")->required(name_required);
    flag(*made, "-n,--members", options->members, "members")->required();
    flag(*made, "--collective", options->collective, "all_reduce (default), broadcast, ...");
    return made;
  };
  CLI::App* show_verb = verb("show", "the steps of every member", true);
  CLI::App* verify_verb = verb("verify", "prove that it does what its collective says", true);
  for (CLI::App* made : {show_verb, verify_verb})
    flag(*made, "--root", options->root, "rank, where the collective has one");
  switch_on(*show_verb, "--json", options->json, "as data");
  CLI::App* price_verb = verb("price", "seconds on idle links, of one program or of all", false);
  flag(*price_verb, "--size", options->size, "of the whole vector (default: 64MB)");
  flag(*price_verb, "--rate", options->rate, "of a member's link, each way (default: 1gbit)");
  flag(*price_verb, "--alpha", options->alpha, "cost of one step (default: 100us)");
  return [=](const Words&) {
    if (show_verb->parsed()) return show(*options);
    if (verify_verb->parsed()) return check(*options);
    return price(*options);
  };
}

}  // namespace shoal::app
