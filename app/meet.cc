// shoal meet -n N: the place where members meet that something else starts, as long as this runs. So others can come in place of lost members without
// `shoal run`, and rank 0 may be lost as well (net/again.h; docs/launchers/by-hand.md).
#include <signal.h>

#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "app/command.h"
#include "shoal/core/error.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/interface.h"

namespace shoal::app {
namespace {

struct MeetOptions {
  int members = 0;
  std::string interface, ports;
};

int hold_meeting(const MeetOptions& options) {
  if (options.members < 1) refuse("says how many members there will be", "-n");
  net::JoinOptions where;
  where.interface = options.interface;
  if (!where.interface.empty()) net::check_interface(where.interface, "--interface");
  if (!options.ports.empty()) where.ports = net::parse_port_range(options.ports, "--port-range");
  sigset_t ending;
  ::sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ending, signal);
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);  // before there are other threads
  const char* const job = std::getenv("SHOAL_JOB");
  net::Coordinator coordinator(net::find_secret().value_or(""), where, job != nullptr ? job : "shoal", static_cast<net::Rank>(options.members));
  say(fmt::format("SHOAL_COORD={} SHOAL_SIZE={}\n", coordinator.addresses(), options.members));
  int signal = 0;
  ::sigwait(&ending, &signal);
  coordinator.give_up(Error(Code::peer_lost, "the meeting place has been closed", "join"));
  return 0;
}

}  // namespace

Action declare_meet(CLI::App& app) {
  const auto options = std::make_shared<MeetOptions>();
  flag(app, "-n,--members", options->members, "how many members will meet here");
  flag(app, "--interface", options->interface, "listen on this network interface only");
  flag(app, "--port-range", options->ports, "listen on the first of these ports that is free, as in 29400-29400");
  return [options](const Words&) { return hold_meeting(*options); };
}

}  // namespace shoal::app
