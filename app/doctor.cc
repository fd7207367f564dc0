// shoal doctor [-n 4 [--lab NAME]]: measures machines and links, and says what will limit a run.
//
// Alone it looks at this machine. With -n it starts itself as the members of a run; as a member (also under
// `shoal run`) it takes part in the measurement, and rank 0 reports.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/diagnosis.h"
#include "app/python.h"
#include "app/run.h"
#include "shoal/core/error.h"
#include "shoal/core/host.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/job.h"

namespace shoal::app {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds patience = 120s;  // importing PyTorch on all members of a small machine takes a while
constexpr std::uint64_t pairs_operation = 0;

// Members share cores: all compute at the same time, so that each sees what it gets in a run.
void measure_compute(Machine& machine) {
  machine.cores = static_cast<unsigned>(usable_cores().size());
  try {
    const ToolResult result = run_tool(python_module("shoal.gemm_rate"), patience);
    if (result.status == 0) {
      machine.flops = nlohmann::json::parse(result.out).at("flops");
    } else {
      machine.no_flops = result.err.substr(result.err.find_last_of('\n', result.err.size() - 2) + 1);
      machine.no_flops = machine.no_flops.substr(0, machine.no_flops.find('\n'));
    }
  } catch (const Error& error) {
    machine.no_flops = error.what();
  } catch (const nlohmann::json::exception& error) {
    machine.no_flops = error.what();
  }
}

Machine measure_alone() {
  Machine machine;
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  machine.host = name;
  machine.address = "-";
  measure_compute(machine);
  return machine;
}

// What a member found out about itself reaches rank 0 over the job's coordinator.
void tell(net::Rendezvous& board, net::Rank rank, const Machine& machine) {
  board.put(fmt::format("doctor/{}", rank),
            nlohmann::json{{"cores", machine.cores}, {"flops", machine.flops}, {"no_flops", machine.no_flops}}
                .dump());
}
void hear(net::Rendezvous& board, net::Rank rank, Machine& machine) {
  const auto told = nlohmann::json::parse(board.get(fmt::format("doctor/{}", rank), patience));
  machine.cores = told.at("cores");
  machine.flops = told.at("flops");
  machine.no_flops = told.at("no_flops");
}

// Everything that all members measure together; complete on rank 0.
Figures measure_together(net::Job& job, net::Rendezvous& board) {
  net::Transport& transport = job.transport();
  const net::Rank rank = transport.rank(), size = transport.size();
  Figures figures;
  transport.doing("shoal doctor: every pair of links");
  figures.pairs = collective::probe_pairs(transport, pairs_operation, transport.now() + patience);
  transport.doing("shoal doctor: the group");
  figures.link = collective::probe(transport, pairs_operation + collective::pair_probe_operations(size),
                                   transport.now() + patience);
  transport.doing("shoal doctor: matrix products");
  Machine own;
  measure_compute(own);
  tell(board, rank, own);
  for (net::Rank other = 0; other < size; ++other) {
    Machine machine{job.members()[other].host, job.members()[other].address, 0, 0, {}};
    hear(board, other, machine);  // on every member: none leaves while another still measures
    figures.members.push_back(machine);
  }
  return figures;
}

int report(const Figures& figures, bool json) {
  const std::string text = json ? to_json(figures) : to_text(figures);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

int examine(bool json) {
  const net::Place place = net::find_place();
  if (place.launcher != net::Place::Launcher::shoal && place.size > 1) {
    throw Error(Code::unsupported, std::string("cannot measure under ") + net::name(place.launcher), "shoal doctor",
                "use shoal run -n N -- shoal doctor");
  }
  if (place.size == 1) return report({{measure_alone()}, {}, {}}, json);
  net::JoinOptions options = net::with_environment({});
  options.settings = {{"program", "shoal doctor"}};
  const auto job = net::join(options);
  net::CoordinatorClient board(net::find_secret().value_or(""), place.coordinator, options.patience, place.job);
  const Figures figures = measure_together(*job, board);
  return place.rank == 0 ? report(figures, json) : 0;
}

}  // namespace

Action declare_doctor(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  auto json = std::make_shared<bool>(false);
  declare_members(app, *options);
  switch_on(app, "--json", *json, "for machines");
  return [&app, options, json](const Words&) {
    if (runs_alone(app, *options)) return examine(*json);
    Words command{std::filesystem::read_symlink("/proc/self/exe"), "doctor"};
    if (*json) command.push_back("--json");
    RunOptions run = *options;
    if (run.name.empty()) run.name = "doctor";
    return run_members(run, command, Console::Show::rank_0);
  };
}

}  // namespace shoal::app
