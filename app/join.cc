// shoal join [RUN] [-n K] [--hosts a,b]: more members for a run that goes on (joining.h).
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "app/command.h"
#include "app/found_run.h"
#include "app/joining.h"
#include "app/run.h"
#include "shoal/net/job.h"

namespace shoal::app {
namespace {

struct JoinWords {
  std::string run, hosts;
  std::optional<int> members;
};

int join(const JoinWords& words) {
  unsigned slots = 0;
  if (!words.hosts.empty()) {
    for (const FarHost& host : parse_hosts(words.hosts)) slots += host.slots;
  }
  const int asked = words.members.value_or(static_cast<int>(std::max(1u, slots)));
  if (asked < 1 || asked > most_members) refuse(fmt::format("{} members more", asked), "-n", fmt::format("1 to {}", most_members));
  JoinRequest request;
  request.members = static_cast<unsigned>(asked);
  request.hosts = words.hosts;
  const auto run = find_run(words.run, takes_members, {"holds no run that takes more members", "those of `shoal run --on-peer-lost rejoin` do, while they go on"});
  say(ask_to_join(run, request, net::with_environment({}).patience) + "\n");
  return 0;
}

}  // namespace

Action declare_join(CLI::App& app) {
  const auto words = std::make_shared<JoinWords>();
  app.add_option("run", words->run, "its folder, or its name in runs/ (default: the newest that takes members)");
  flag(app, "-n,--members", words->members, "so many (default: 1, or as many as the hosts take)");
  flag(app, "--hosts", words->hosts, "on these, of a run with --hosts");
  return [words](const Words&) { return join(*words); };
}

}  // namespace shoal::app
