// The program's table of commands (main.cc), and the one way in which a command declares a flag.
//
// Every long flag has a twin in the environment and a key in the TOML file of --config: --run-name is
// SHOAL_RUN_NAME and, for `shoal run`, the key run-name of section [run]. A flag beats the environment, which
// beats the file, which beats the default.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "shoal/core/error.h"

namespace shoal::app {

using Words = std::vector<std::string>;
// What a command does once its flags are read, given the words after `--`; the result is the exit status.
using Action = std::function<int(const Words& after_dashes)>;

struct Command {
  const char* name;
  const char* summary;
  Action (*declare)(CLI::App& app);  // adds flags and positionals to `app`
};

Action declare_run(CLI::App& app);
Action declare_meet(CLI::App& app);
Action declare_join(CLI::App& app);
Action declare_lab(CLI::App& app);
Action declare_train(CLI::App& app);
Action declare_plan(CLI::App& app);
Action declare_factorize(CLI::App& app);
Action declare_linear(CLI::App& app);
Action declare_cluster_points(CLI::App& app);
Action declare_dictionary(CLI::App& app);
Action declare_metric(CLI::App& app);
Action declare_topics(CLI::App& app);
Action declare_doctor(CLI::App& app);
Action declare_bench(CLI::App& app);
Action declare_explain(CLI::App& app);
Action declare_program(CLI::App& app);
Action declare_sim(CLI::App& app);
Action declare_topo(CLI::App& app);
Action declare_manual(CLI::App& app);
Action declare_completion(CLI::App& app);

// "-n,--members" -> "SHOAL_MEMBERS"; empty without a long name.
std::string environment_twin(const std::string& names);

template <class Value>
CLI::Option* flag(CLI::App& app, const std::string& names, Value& value, const std::string& help) {
  CLI::Option* const option = app.add_option(names, value, help)->envname(environment_twin(names));
  if constexpr (std::is_same_v<Value, std::string>) {  // "$DIR" of a DIR that is not set: never what was meant
    option->check([](const std::string& text) {
      return std::string(text.empty() ? "is empty: leave it out, or set what it is taken from" : "");
    });
  }
  if constexpr (std::is_same_v<Value, std::uint64_t>) {  // the parser takes -1 for the largest number
    option->check([](const std::string& text) {
      const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
      return std::string(digits && (text.size() < 20 || (text.size() == 20 && text <= "18446744073709551615")) ? "" : "\"" + text + "\" is no whole number");
    });
  }
  return option;
}
inline CLI::Option* switch_on(CLI::App& app, const std::string& names, bool& value, const std::string& help) {
  return app.add_flag(names, value, help)->envname(environment_twin(names));
}

// Throws Error{invalid_argument}. where: the flag or file that is wrong.
using shoal::refuse;
void say(const std::string& line);  // on stdout, at once: people watch it, through pipes too

// A folder in this one for what is made of a file or folder: "mail.txt.gz", ".topics" -> "mail.topics".
std::string folder_named_after(const std::string& file, const char* ending);

// Words that a positional may be, for --help and completion; others may be meant, too: who reads the value refuses what it does not know.
void offer(CLI::Option& positional, const Words& choices);
Words offered(const CLI::Option& positional);

// The command takes a command line: the words after `--`, or those after its flags and positionals.
void accept_command(CLI::App& app);
// The words of that command line. Throws Error{invalid_argument} if there are none or the first is a flag.
Words trailing_command(const CLI::App& app, const Words& after_dashes);
// Throws Error{invalid_argument} if there are words, after `--` or before, that nobody takes.
void expect_no_command(const CLI::App& app, const Words& after_dashes);

// Reads --config, leaving out what the environment says already. Throws Error{invalid_argument} naming what is no flag of
// `program`, which outlives this.
class Settings : public CLI::ConfigTOML {
 public:
  explicit Settings(const CLI::App& program) : program_(program) {}
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  void check(const CLI::ConfigItem& item) const;
  [[noreturn]] static void refuse(std::string why);
  const CLI::App& program_;
};

}  // namespace shoal::app
