// shoal completion bash|zsh|fish: a script that completes commands and flags, from the table of commands.
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command_tree.h"
#include "shoal/core/error.h"

namespace shoal::app {
namespace {

// Calls visit(tree) for every command and verb, the program itself first.
template <class Visit>
void each(const CommandTree& tree, const Visit& visit) {
  visit(tree);
  for (const auto& verb : tree.verbs) each(verb, visit);
}

std::string quoted(const std::string& text) {  // for all three shells: '...', and '\'' for a quote
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

Words next_words(const CommandTree& tree) {
  Words words;
  for (const auto& verb : tree.verbs) words.push_back(verb.path.back());
  for (const auto& positional : tree.positionals) words.insert(words.end(), positional.choices.begin(), positional.choices.end());
  for (const auto& flag : tree.flags) words.push_back(flag.names.back());
  return words;
}

// What bash and zsh share: the command's path is what of the words so far names commands; after -- the shell's own
// completion takes over. `cases` tells the paths that may follow, `found` what completes each.
std::string bash(const CommandTree& all) {
  Words paths;
  std::string found;
  each(all, [&](const CommandTree& tree) {
    if (tree.path.size() > 1) paths.push_back(quoted(tree.words(" ")));
    found += fmt::format("    {}) words={} ;;\n", quoted(tree.words(" ")), quoted(fmt::format("{}", fmt::join(next_words(tree), " "))));
  });
  return fmt::format(R"(_shoal() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path=shoal words i
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then
      mapfile -t COMPREPLY < <(compgen -c -- "$current")
      return
    fi
    case "$path ${{COMP_WORDS[i]}}" in
      {}) path="$path ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case $path in
{}  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o bashdefault -o default -F _shoal shoal
)",
                     fmt::join(paths, " | "), found);
}

std::string zsh(const CommandTree& all) {
  Words paths;
  std::string found;
  const auto described = [](const std::string& word, const std::string& help) {
    std::string plain = help;
    for (char& c : plain) c = c == ':' ? ',' : c;  // a colon ends the word
    return quoted(word + ":" + plain);
  };
  each(all, [&](const CommandTree& tree) {
    if (tree.path.size() > 1) paths.push_back(fmt::format("({})", quoted(tree.words(" "))));
    Words choices;
    for (const auto& verb : tree.verbs) choices.push_back(described(verb.path.back(), verb.summary));
    for (const auto& positional : tree.positionals) {
      for (const auto& choice : positional.choices) choices.push_back(described(choice, positional.name));
    }
    for (const auto& flag : tree.flags) choices.push_back(described(flag.names.back(), flag.help));
    found += fmt::format("    ({}) choices=({}) ;;\n", quoted(tree.words(" ")), fmt::join(choices, " "));
  });
  return fmt::format(R"(#compdef shoal
local at=shoal word
local -a choices
for word in "${{(@)words[2,CURRENT-1]}}"; do
  if [[ $word == -- ]]; then
    _command_names
    return
  fi
  case "$at $word" in
    {}) at="$at $word" ;;
  esac
done
case $at in
{}esac
_describe shoal choices || _files
)",
                     fmt::join(paths, " | "), found);
}

std::string fish(const CommandTree& all) {
  std::string lines;
  each(all, [&](const CommandTree& tree) {
    std::string when = "true";
    for (std::size_t i = 1; i < tree.path.size(); ++i) when += "; and __fish_seen_subcommand_from " + tree.path[i];
    Words below;
    for (const auto& verb : tree.verbs) below.push_back(verb.path.back());
    const std::string verbs_when = below.empty() ? when : fmt::format("{}; and not __fish_seen_subcommand_from {}", when, fmt::join(below, " "));
    for (const auto& verb : tree.verbs) {
      lines += fmt::format("complete -c shoal -n {} -f -a {} -d {}\n", quoted(verbs_when), verb.path.back(), quoted(verb.summary));
    }
    for (const auto& positional : tree.positionals) {
      for (const auto& choice : positional.choices) {
        lines += fmt::format("complete -c shoal -n {} -f -a {} -d {}\n", quoted(verbs_when), choice, quoted(positional.name));
      }
    }
    for (const auto& flag : tree.flags) {
      std::string names;
      for (const auto& name : flag.names) names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      lines += fmt::format("complete -c shoal -n {}{}{} -d {}\n", quoted(verbs_when), names, flag.takes_value ? " -r" : "", quoted(flag.help));
    }
  });
  return lines;
}

int complete(const CLI::App& program, const std::string& shell) {
  const CommandTree all = command_tree(program);
  if (shell != "bash" && shell != "zsh" && shell != "fish")
    throw Error(Code::invalid_argument, "there is no completion for " + shell, "shoal completion", "bash, zsh or fish");
  std::fputs((shell == "bash" ? bash(all) : shell == "zsh" ? zsh(all) : fish(all)).c_str(), stdout);
  return 0;
}

}  // namespace

Action declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  offer(*app.add_option("shell", *shell, "whose")->required(), {"bash", "zsh", "fish"});
  return [&app, shell](const Words&) { return complete(*app.get_parent(), *shell); };
}

}  // namespace shoal::app
