// shoal topo probe [-n 4 [--lab NAME]]: members measure each other, alone and together, and say which network explains it.
//
// With -n it starts itself as the members of a run; as a member (also under `shoal run`) it takes part, and rank 0 reports.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "app/run.h"
#include "app/topo.h"
#include "shoal/collective/measure_network.h"
#include "shoal/core/error.h"
#include "shoal/net/job.h"

namespace shoal::app {
namespace {

int take_part(const std::string& out) {
  const net::Place place = net::find_place();
  if (place.size < 2)
    refuse("needs members", "shoal topo probe", "shoal topo probe -n 4, or shoal run --hosts ... -- shoal topo probe");
  net::JoinOptions options = net::with_environment({});
  options.settings = {{"program", "shoal topo probe"}};
  const auto job = net::join(options);
  const auto network = collective::measure_network(*job, 0);
  if (job->transport().rank() != 0) return 0;
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
