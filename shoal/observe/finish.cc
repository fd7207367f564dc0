#include "shoal/observe/finish.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "shoal/core/error.h"
#include "shoal/observe/report.h"
#include "shoal/observe/run_events.h"
#include "shoal/observe/trace.h"

namespace shoal::observe {
namespace {

constexpr std::size_t kLargestPlan = 256 << 20;

// A plan that cannot be read costs the report two columns, not the report.
std::optional<exchange::ExchangePlan> plan_of(const RunFolder& folder, RunEvents& run) {
  try {
    const auto text = folder.read("plan.json", kLargestPlan);
    if (text) return exchange::plan_from_json(*text, "plan.json");
  } catch (const Error& error) {
    run.remarks.push_back(error.what());
  }
  return std::nullopt;
}

struct Told {
  Account account;
  Explanation why;
};

Told tell(const RunFolder& folder, RunEvents& run) {
  const auto plan = plan_of(folder, run);
  Account account = account_of(run, plan ? &*plan : nullptr);
  Explanation why = explain(account, plan ? &*plan : nullptr);
  return {std::move(account), std::move(why)};
}

std::string run_json(const RunFolder& folder, const RunEvents& run, const Account& account) {
  const std::time_t began = static_cast<std::time_t>(run.unix_begin_ns / 1'000'000'000);
  nlohmann::ordered_json json = {{"name", folder.name()},
                                 {"began", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(began))},
                                 {"seconds", account.mean.whole()},
                                 {"steps", account.steps},
                                 {"size", run.size},
                                 {"members", nlohmann::ordered_json::array()}};
  for (const RankEvents& rank : run.ranks) {
    json["members"].push_back({{"rank", rank.who.rank}, {"host", rank.who.host}, {"pid", rank.who.pid}});
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

Finished finish_run(const RunFolder& folder) {
  RunEvents run = read_run(folder);
  write_merged(folder, run);
  auto [account, why] = tell(folder, run);
  write_trace(folder, run);
  folder.write("report.html", report_of(folder.name(), run, account, why));
  if (!std::filesystem::exists(folder.path() / "run.json")) folder.write("run.json", run_json(folder, run, account));
  return {std::move(account), std::move(why), folder.path() / "trace.json.gz", folder.path() / "report.html"};
}

Account account_of(const RunFolder& folder) {
  RunEvents run = read_run(folder);
  return tell(folder, run).account;
}

Explanation explain_run(const RunFolder& folder) {
  RunEvents run = read_run(folder);
  return tell(folder, run).why;
}

}  // namespace shoal::observe
