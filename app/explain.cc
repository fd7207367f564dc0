// shoal explain [RUN] [--json]: what a run's time was lost to, the largest cause first.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "app/command.h"
#include "shoal/core/error.h"
#include "shoal/observe/finish.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;

bool recorded(const fs::path& folder) {
  return fs::exists(folder / "events.jsonl") || !observe::RunFolder::open(folder).event_files().empty();
}

// Names begin with the time, so the last one in order is the newest.
fs::path newest_run() {
  std::vector<fs::path> folders;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("runs", none)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::sort(folders.rbegin(), folders.rend());
  const auto newest = std::find_if(folders.begin(), folders.end(), recorded);
  if (newest == folders.end())
    throw Error(Code::invalid_argument, "holds no run with events", "runs", "give the folder of a run: shoal explain RUN");
  return *newest;
}

// A folder, or its name in runs/.
fs::path find_run(const std::string& run) {
  if (run.empty()) return newest_run();
  if (fs::is_directory(run)) return run;
  if (fs::is_directory(fs::path("runs") / run)) return fs::path("runs") / run;
  throw Error(Code::invalid_argument, "there is no such run", run, "give its folder, or its name in runs/");
}

}  // namespace

Action declare_explain(CLI::App& app) {
  auto run = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  app.add_option("run", *run, "its folder, or its name in runs/ (default: the newest)");
  switch_on(app, "--json", *json, "one line for machines");
  return [run, json](const Words&) {
    const fs::path path = find_run(*run);
    const observe::Explanation why = observe::explain_run(observe::RunFolder::open(path));
    const std::string text = *json ? observe::to_json(why, path) : observe::to_text(why, path);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  };
}

}  // namespace shoal::app
