// `shoal`: one table of commands; each command has a file of its own.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "app/command.h"
#include "app/far.h"
#include "shoal/core/error.h"

namespace shoal::app {
namespace {

constexpr Command commands[] = {
    {"run", "start a command on N members of a job", declare_run},
    {"train", "train a known model on this machine or on N members", declare_train},
    {"factorize", "factors of ratings: recommendations, non-negative matrices", declare_factorize},
    {"linear", "classes of sparse rows: multiclass logistic regression", declare_linear},
    {"cluster-points", "groups of samples that lie near each other: k-means", declare_cluster_points},
    {"dictionary", "atoms of which few make up a sample: sparse coding", declare_dictionary},
    {"metric", "distances by which samples of one class are near: metric learning", declare_metric},
    {"topics", "what texts are about: latent Dirichlet allocation", declare_topics},
    {"meet", "hold the place where members meet that something else starts", declare_meet},
    {"join", "add members to a run that goes on", declare_join},
    {"lab", "hosts with limited links on this machine (network namespaces)", declare_lab},
    {"plan", "predict what a model would take on a cluster, by each way", declare_plan},
    {"doctor", "measure machines and links, say what will limit a run", declare_doctor},
    {"bench", "time what members do together: sums of gradients by size", declare_bench},
    {"explain", "say what a run's time was lost to, and what helps", declare_explain},
    {"program", "show, verify and price a collective", declare_program},
    {"sim", "simulate programs, plans, tables and other traffic on a network", declare_sim},
    {"topo", "networks: measure, make, import and look at them", declare_topo},
    {"manual", "print a command's manual page", declare_manual},
    {"completion", "print what a shell needs to complete this program's words", declare_completion},
};

int run_program(int argc, char** argv) {
  CLI::App program("Shoal trains models across ordinary machines on ordinary networks.", "shoal");
  program.require_subcommand(0, 1);
  program.allow_extras();
  program.set_help_all_flag("--help-all", "the flags of every command");
  program.set_config("--config", "", "TOML file with flags, a section a command")->envname("SHOAL_CONFIG");
  program.config_formatter(std::make_shared<Settings>(program));
  program.set_version_flag("--version", std::string("shoal ") + SHOAL_VERSION);

  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const auto& command : commands) {
    CLI::App* app = program.add_subcommand(command.name, command.summary);
    actions.emplace_back(app, command.declare(*app));
  }
  // Words after the first `--` are a command line for somebody else.
  char** const dashes = std::find(argv, argv + argc, std::string_view("--"));
  const Words after_dashes(std::min(dashes + 1, argv + argc), argv + argc);
  try {
    program.parse(static_cast<int>(dashes - argv), argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return program.exit(asked);
  } catch (const CLI::ParseError& mistake) {
    throw Error(Code::invalid_argument, mistake.what(), "shoal", "shoal --help-all lists every flag");
  }
  for (const auto& [app, action] : actions) {
    if (!app->parsed()) continue;
    expect_no_command(*app, after_dashes);
    return action(after_dashes);
  }
  const Words rest = program.remaining();
  throw Error(Code::invalid_argument, rest.empty() ? "no command" : "there is no command " + rest.front(),
              "shoal", "shoal --help lists them");
}

}  // namespace
}  // namespace shoal::app

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string_view(argv[1]) == "far-member") return shoal::app::keep_far_member();
    const int status = shoal::app::run_program(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {  // what did not fit the buffer may have failed before
      throw shoal::Error(shoal::Code::io, std::string("cannot be written: ") + std::strerror(errno), "stdout");
    }
    return status;
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return shoal::exit_code(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shoal: %s\n", error.what());
    return 1;
  }
}
