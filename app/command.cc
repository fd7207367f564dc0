#include "app/command.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "shoal/core/error.h"

namespace shoal::app {
namespace {

constexpr std::size_t kMostSettings = 1 << 20;  // bytes of a --config file

}  // namespace


void say(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

std::string folder_named_after(const std::string& file, const char* ending) {
  namespace fs = std::filesystem;
  fs::path path = fs::absolute(file).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "mail/"
  std::string name = path.filename();
  for (const std::string_view packing : {".gz", ".bz2", ".xz", ".zst"}) {
    if (name.ends_with(packing)) name.erase(name.size() - packing.size());
  }
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0) name.erase(dot);
  return name + ending;
}

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

namespace {

// "shoal program show"
std::string spelled(const CLI::App& app) {
  return app.get_parent() ? spelled(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

}  // namespace

// CLI11 keeps a name for what an option takes, and shows it in --help.
void offer(CLI::Option& positional, const Words& choices) {
  std::string all;
  for (const auto& choice : choices) all += (all.empty() ? "" : "|") + choice;
  positional.type_name(all);
}

Words offered(const CLI::Option& positional) {
  const std::string all = positional.get_type_name();
  Words choices;
  if (all.find('|') == std::string::npos) return choices;
  std::istringstream parts(all);
  for (std::string choice; std::getline(parts, choice, '|');) choices.push_back(choice);
  return choices;
}

void accept_command(CLI::App& app) { app.prefix_command(); }

void expect_no_command(const CLI::App& app, const Words& after_dashes) {
  for (const CLI::App* verb : app.get_subcommands()) return expect_no_command(*verb, after_dashes);
  if (app.get_prefix_command()) return;
  for (const auto& word : app.remaining()) {
    throw Error(Code::invalid_argument, (word.starts_with('-') ? "unknown flag " : "does not take ") + word, spelled(app),
                "shoal --help-all lists every flag");
  }
  if (after_dashes.empty()) return;
  throw Error(Code::invalid_argument, "takes no command, but one follows --: " + after_dashes.front(), spelled(app));
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

// CLI11 passes over what it does not know, so that any file at all would be one of settings.
void Settings::check(const CLI::ConfigItem& item) const {
  const CLI::App* app = &program_;
  for (const auto& section : item.parents) {
    const auto named = app->get_subcommands([&](const CLI::App* inner) { return inner->get_name() == section; });
    if (named.empty()) refuse("there is no command for section " + section);
    app = named.front();
  }
  const bool marks_section = item.name == "++" || item.name == "--";
  if (!marks_section && !app->get_option_no_throw("--" + item.name)) refuse("there is no flag for " + item.fullname());
}

void Settings::refuse(std::string why) {
  const bool text = std::all_of(why.begin(), why.end(), [](unsigned char c) { return std::isprint(c); });
  throw Error(Code::invalid_argument, text ? why : "it is no text", "--config", "shoal --help-all lists commands and flags");
}

std::vector<CLI::ConfigItem> Settings::from_config(std::istream& input) const {
  std::string text(kMostSettings + 1, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(input.gcount()));
  if (text.size() > kMostSettings || text.find('\0') != std::string::npos) refuse("it is no text");
  std::istringstream settings(text);
  auto found = CLI::ConfigTOML::from_config(settings);
  for (const auto& item : found) check(item);
  std::erase_if(found, [](const CLI::ConfigItem& item) {
    return std::getenv(environment_twin("--" + item.name).c_str()) != nullptr;
  });
  return found;
}

}  // namespace shoal::app
