// shoal topo probe [-n 4 [--lab NAME]]: members measure each other, alone and together, and say which network explains it.
//
// With -n it starts itself as the members of a run; as a member (also under `shoal run`) it takes part, and rank 0 reports.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include "app/run.h"
#include "app/topo.h"
#include "shoal/collective/probe_together.h"
#include "shoal/core/error.h"
#include "shoal/net/job.h"

namespace shoal::app {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds patience_a_round = 60s, patience_a_pair = 10s;

// Members of one machine have one host's name: its ranks tell them apart.
std::vector<std::string> unequal_names(const net::Job& job, net::Rank size) {
  std::map<std::string, int> times;
  for (net::Rank rank = 0; rank < size; ++rank) ++times[job.members()[rank].host];
  std::vector<std::string> names;
  for (net::Rank rank = 0; rank < size; ++rank) {
    const std::string& host = job.members()[rank].host;
    names.push_back(times[host] == 1 ? host : fmt::format("{}:{}", host, rank));
  }
  return names;
}

int take_part(const std::string& out) {
  const net::Place place = net::find_place();
  if (place.size < 2)
    refuse("needs members", "shoal topo probe", "shoal topo probe -n 4, or shoal run --hosts ... -- shoal topo probe");
  net::JoinOptions options = net::with_environment({});
  options.settings = {{"program", "shoal topo probe"}};
  const auto job = net::join(options);
  net::Transport& transport = job->transport();
  const net::Rank size = transport.size();
  transport.doing("shoal topo probe: every pair alone");
  const auto pairs = collective::probe_pairs(transport, 0, transport.now() + patience_a_round + size * size * patience_a_pair);
  transport.doing("shoal topo probe: flows together");
  const auto network = collective::infer_network(transport, unequal_names(*job, size), pairs,
                                                 collective::pair_probe_operations(size), patience_a_round);
  if (transport.rank() != 0) return 0;
  if (!out.empty()) write_topology(network, out);
  const std::string text = out.empty() ? to_json(network) : to_text(network);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

Action declare_topo_probe(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  auto out = std::make_shared<std::string>();
  declare_members(app, *options);
  flag(app, "-o,--out", *out, "the file to write (default: printed)");
  return [&app, options, out](const Words&) {
    if (runs_alone(app, *options)) return take_part(*out);
    Words command{std::filesystem::read_symlink("/proc/self/exe"), "topo", "probe"};
    if (!out->empty()) command.insert(command.end(), {"--out", std::filesystem::absolute(*out)});
    RunOptions run = *options;
    if (run.name.empty()) run.name = "probe";
    return run_members(run, command, Console::Show::rank_0);
  };
}

}  // namespace shoal::app
