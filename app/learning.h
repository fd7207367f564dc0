// What the commands of all learners share: `train` on one member or on those of a job, its flags, and what it shows of itself.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/command.h"
#include "shoal/data/read.h"
#include "shoal/learn/labelled_rows.h"
#include "shoal/learn/model_folder.h"
#include "shoal/learn/source.h"
#include "shoal/net/job.h"
#include "shoal/table/tables.h"

namespace shoal::app {

struct DataOptions {
  std::vector<std::string> files;
  bool skip_faulty = false, json = false;
  std::vector<std::filesystem::path> paths() const { return {files.begin(), files.end()}; }
};

struct TrainingOptions {
  DataOptions data;
  std::string test, output, start, consistency = "bsp", sharing = "auto", schedule = "sqrt";
  double test_share = 0.1, step = 1, l2 = 0;
  unsigned epochs = 10, every = 1;
  std::uint64_t batch = 1, seed = 1;
  bool resume = false, on_disk = false;

  learn::Source source() const;
  // Throws Error{invalid_argument} naming the flag that is wrong.
  void check() const;
};

// Of `predict` and `evaluate`.
struct UseOptions {
  DataOptions data;
  std::string model, output;
};

// What learners over rows read, for their help.
inline constexpr const char* kSampleFiles = "samples in LIBSVM's format, MatrixMarket or IDX, packed or not; labels are not looked at";
inline constexpr const char* kClassFiles = "samples in LIBSVM's format or IDX, packed or not; a label is a class";

void declare_data(CLI::App& app, DataOptions& options, const std::string& what);
void declare_training(CLI::App& app, TrainingOptions& options);
void declare_steps(CLI::App& app, TrainingOptions& options);  // of learners that go down a gradient
void declare_rows(CLI::App& app, TrainingOptions& options);   // of learners from rows
// What a learner's three verbs do; each returns the exit status.
struct Verbs {
  std::function<int()> train;
  std::function<int(const UseOptions&)> predict, evaluate;
};
// The verbs beside `train`, which is declared, and the action of all three.
Action declare_use(CLI::App& app, const CLI::App* train, const std::string& what, const char* predict, const char* evaluate, Verbs verbs);

// A learner that has read its data, and is to be trained.
struct Course {
  std::string command;                    // "factorize"
  learn::Json config;                     // options and data as the model keeps them: a model that is gone on from has the same
  std::vector<std::string> read;          // sentences
  std::function<void(const learn::ModelFolder&)> write_names;
  std::function<std::unique_ptr<learn::Learner>(net::Transport&, const table::TablesOptions&)> begin;

  void describe(const learn::LabelledRows& rows, const TrainingOptions& options);  // adds to config and read what the data is
};
// Joins the job, trains, keeps the model. Returns the exit status.
int train(const Course& course, const TrainingOptions& options, const net::Place& place);

// Prints text, or writes it into a file if there is one.
void deliver(const std::string& text, const std::string& file);

}  // namespace shoal::app
