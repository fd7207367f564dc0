#include "app/command_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shoal::app {
namespace {

CommandTree tree_of(const CLI::App& app, std::vector<std::string> path) {
  CommandTree tree;
  tree.path = std::move(path);
  tree.summary = app.get_description();
  tree.takes_command = app.get_prefix_command();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      tree.positionals.push_back({option->get_single_name(), option->get_description(), option->get_required(), offered(*option)});
      continue;
    }
    CommandTree::Flag flag;
    for (const auto& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const auto& name : option->get_lnames()) flag.names.push_back("--" + name);
    flag.help = option->get_description();
    flag.twin = option->get_envname();
    flag.takes_value = option->get_items_expected_max() > 0;
    tree.flags.push_back(std::move(flag));
  }
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    auto below = tree.path;
    below.push_back(verb->get_name());
    tree.verbs.push_back(tree_of(*verb, std::move(below)));
  }
  return tree;
}

}  // namespace

std::string CommandTree::words(const char* between) const { return fmt::format("{}", fmt::join(path, between)); }

CommandTree command_tree(const CLI::App& program) { return tree_of(program, {program.get_name()}); }

}  // namespace shoal::app
