// shoal explain [RUN] [--json]: what a run's time was lost to, the largest cause first.
#include <cstdio>
#include <filesystem>

#include "app/command.h"
#include "app/found_run.h"
#include "shoal/core/error.h"
#include "shoal/observe/finish.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;

bool recorded(const fs::path& folder) {
  return fs::exists(folder / "events.jsonl") || !observe::RunFolder::open(folder).event_files().empty();
}

}  // namespace

Action declare_explain(CLI::App& app) {
  auto run = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  app.add_option("run", *run, "its folder, or its name in runs/ (default: the newest)");
  switch_on(app, "--json", *json, "one line for machines");
  return [run, json](const Words&) {
    const fs::path path = find_run(*run, recorded, {"holds no run with events", "give the folder of a run: shoal explain RUN"});
    const observe::Explanation why = observe::explain_run(observe::RunFolder::open(path));
    const std::string text = *json ? observe::to_json(why, path) : observe::to_text(why, path);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  };
}

}  // namespace shoal::app
