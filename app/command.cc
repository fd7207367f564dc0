#include "app/command.h"

#include <cctype>
#include <cstdlib>

#include "shoal/core/error.h"

namespace shoal::app {

std::string environment_twin(const std::string& names) {
  const auto dashes = names.find("--");
  if (dashes == std::string::npos) return {};
  std::string twin = "SHOAL_";
  for (char c : names.substr(dashes + 2)) {
    if (c == ',') break;
    twin += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return twin;
}

void accept_command(CLI::App& app) { app.prefix_command(); }

void expect_no_command(const CLI::App& app, const Words& after_dashes) {
  for (const CLI::App* verb : app.get_subcommands()) return expect_no_command(*verb, after_dashes);
  if (after_dashes.empty() || app.get_prefix_command()) return;
  throw Error(Code::invalid_argument, "takes no command, but one follows --: " + after_dashes.front(),
              "shoal " + app.get_name());
}

Words trailing_command(const CLI::App& app, const Words& after_dashes) {
  Words words = app.remaining();
  words.insert(words.end(), after_dashes.begin(), after_dashes.end());
  if (words.empty()) {
    throw Error(Code::invalid_argument, "no command to start", "shoal " + app.get_name(),
                "give it after --, as in: shoal " + app.get_name() + " ... -- python train.py");
  }
  if (words.front().starts_with('-')) {
    throw Error(Code::invalid_argument, "unknown flag " + words.front(), "shoal " + app.get_name(),
                "shoal " + app.get_name() + " --help lists them; the command goes after --");
  }
  return words;
}

std::vector<CLI::ConfigItem> Settings::from_config(std::istream& input) const {
  auto found = CLI::ConfigTOML::from_config(input);
  std::erase_if(found, [](const CLI::ConfigItem& item) {
    return std::getenv(environment_twin("--" + item.name).c_str()) != nullptr;
  });
  return found;
}

}  // namespace shoal::app
