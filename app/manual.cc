// shoal manual [COMMAND]: manual pages in roff, one a command, from the table of commands.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command_tree.h"
#include "shoal/core/error.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;

// As roff text: a backslash, a dash and a leading dot or quote mean something there.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string synopsis(const CommandTree& of) {
  std::string line = fmt::format(".B {}\n", roff(of.words(" ")));
  if (!of.flags.empty()) line += "[\\fIflags\\fR]\n";
  for (const auto& one : of.positionals) {
    line += one.required ? fmt::format("\\fI{}\\fR\n", roff(one.name)) : fmt::format("[\\fI{}\\fR]\n", roff(one.name));
  }
  if (!of.verbs.empty()) line += "\\fIcommand\\fR ...\n";
  if (of.takes_command) line += "[\\-\\-] \\fIcommand\\fR ...\n";
  return line;
}

std::string definitions(const CommandTree& of) {
  std::string text;
  for (const auto& one : of.positionals) {
    text += fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(one.name), roff(one.help));
    if (!one.choices.empty()) text += fmt::format(".br\n{}\n", roff(fmt::format("{}", fmt::join(one.choices, ", "))));
  }
  for (const auto& flag : of.flags) {
    std::string names;
    for (const auto& name : flag.names) names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
    text += fmt::format(".TP\n{}{}\n{}\n", names, flag.takes_value ? " \\fIvalue\\fR" : "", roff(flag.help));
    if (!flag.twin.empty()) text += fmt::format(".br\nIn the environment: \\fB{}\\fR\n", roff(flag.twin));
  }
  return text;
}

constexpr const char* about_settings =
    ".SH SETTINGS\n"
    "A flag beats its twin in the environment, which beats the TOML file given by \\fB\\-\\-config\\fR (a section a command), which "
    "beats the default.\n";
constexpr const char* about_status =
    ".SH EXIT STATUS\n"
    ".TP\n0\ndone\n"
    ".TP\n1\nthe command, or this machine, failed\n"
    ".TP\n2\na mistake that the user can mend; one line says where and how\n"
    ".TP\n3\na member was lost\n"
    ".TP\n143\nended by TERM\n";

std::string page(const CommandTree& of) {
  std::string text = fmt::format(".TH {} 1 \"\" \"shoal {}\" \"Shoal\"\n", roff(of.words("-")), SHOAL_VERSION);
  text += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}", roff(of.words("-")), roff(of.summary), synopsis(of));
  for (const auto& verb : of.verbs) text += ".br\n" + synopsis(verb);
  text += ".SH DESCRIPTION\n" + roff(of.summary) + "\n" + definitions(of);
  for (const auto& verb : of.verbs) {
    const bool own_page = of.path.size() == 1;
    text += fmt::format(".SS {}\n{}\n", roff(verb.words(" ")), roff(verb.summary));
    text += own_page ? fmt::format(".br\nSee \\fB{}\\fR(1).\n", roff(verb.words("-"))) : definitions(verb);
  }
  return text + about_settings + about_status;
}

void write_pages(const CommandTree& all, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  const auto write = [&](const CommandTree& of) {
    const fs::path path = folder / (of.words("-") + ".1");
    std::ofstream file(path);
    file << page(of);
    file.close();
    if (!file) throw Error(Code::io, "cannot be written", path);
  };
  write(all);
  for (const auto& command : all.verbs) write(command);
}

int manual(const CLI::App& program, const std::string& command, const std::string& into) {
  const CommandTree all = command_tree(program);
  if (!into.empty()) {
    write_pages(all, into);
    return 0;
  }
  const auto found = std::find_if(all.verbs.begin(), all.verbs.end(), [&](const auto& verb) { return verb.path.back() == command; });
  if (!command.empty() && found == all.verbs.end())
    throw Error(Code::invalid_argument, "there is no command " + command, "shoal manual", "shoal --help lists them");
  std::fputs(page(command.empty() ? all : *found).c_str(), stdout);
  return 0;
}

}  // namespace

Action declare_manual(CLI::App& app) {
  auto command = std::make_shared<std::string>(), into = std::make_shared<std::string>();
  app.add_option("command", *command, "whose page; without: that of shoal itself");
  app.add_option("--into", *into, "write every page as a file into this folder");
  return [&app, command, into](const Words&) { return manual(*app.get_parent(), *command, *into); };
}

}  // namespace shoal::app
