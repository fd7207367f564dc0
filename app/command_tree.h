// The program's commands as data, read from the one table that parses them: what manual pages and shell completion are made from.
#pragma once

#include <string>
#include <vector>

#include "app/command.h"

namespace shoal::app {

struct CommandTree {
  struct Flag {
    std::vector<std::string> names;  // "-n", "--members"
    std::string help, twin;          // twin: its name in the environment, may be empty
    bool takes_value = false;
  };
  struct Positional {
    std::string name, help;
    bool required = false;
    std::vector<std::string> choices;  // that offer() named; may be empty
  };
  std::vector<std::string> path;     // {"shoal", "lab", "up"}
  std::string summary;
  std::vector<Flag> flags;
  std::vector<Positional> positionals;
  bool takes_command = false;        // a command line may follow after --
  std::vector<CommandTree> verbs;

  std::string words(const char* between) const;  // "shoal-lab-up"
};

CommandTree command_tree(const CLI::App& program);

}  // namespace shoal::app
