#include "app/learning.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <optional>

#include "app/progress.h"
#include "app/recording.h"
#include "shoal/core/aside.h"
#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/learn/training.h"
#include "shoal/net/call.h"
#include "shoal/table/shares.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;

fs::path folder_for(const TrainingOptions& options) {
  if (!options.output.empty()) return options.output;
  return folder_named_after(options.data.files.front(), ".model");
}

std::string sentence(const learn::Epoch& epoch, unsigned epochs) {
  std::string text = fmt::format("epoch {} of {}: ", epoch.number, epochs);
  for (const auto& [name, value] : epoch.figures) {
    const bool tiny = std::abs(value) < 1e-3 && value != 0;
    text += tiny ? fmt::format("{} {:.1e}, ", name, value) : fmt::format("{} {:.4f}, ", name, value);
  }
  return text + fmt::format("{:.2f} s ({:.0f} % for shared rows), {:.0f} samples/s\n", epoch.seconds, 100 * epoch.waited / epoch.seconds,
                            static_cast<double>(epoch.samples) / epoch.seconds);
}

learn::ModelFolder opened(const Course& course, const TrainingOptions& options) {
  learn::ModelFolder folder(folder_for(options));
  if (!folder.holds_model()) {
    folder.begin(course.config);
    course.write_names(folder);
  } else if (options.resume) {
    folder.go_on(course.config);
  } else {
    refuse("holds a model already", folder.path().string(), "--resume goes on from it; or name another folder with --output");
  }
  return folder;
}

learn::Tensors first_values(const Course& course, const std::string& start) {
  const learn::ModelFolder folder(start);
  folder.config(course.config.at("learner"));
  return folder.model().tensors;
}

}  // namespace

void TrainingOptions::check() const {
  if (!(test_share >= 0 && test_share < 1)) refuse(fmt::format("{} is not in [0, 1)", test_share), "--test-share");
  if (!(step > 0) || !std::isfinite(step)) refuse(fmt::format("{} is not above zero", step), "--step");
  if (!(l2 >= 0) || !std::isfinite(l2)) refuse(fmt::format("{} is below zero", l2), "--l2");
  if (epochs < 1 || epochs > 1'000'000) refuse("is between 1 and 1000000", "--epochs");
  if (every < 1) refuse("is at least 1", "--every");
  if (batch < 1) refuse("is at least 1", "--batch");
  if (schedule != "sqrt" && schedule != "constant") refuse("\"" + schedule + "\" is none", "--schedule", "sqrt or constant");
}

learn::Source TrainingOptions::source() const {
  learn::Source from{data.paths(), {}, test_share, seed, data.skip_faulty};
  if (on_disk) from.rows_in = fs::current_path();
  if (!test.empty()) from.test_files.emplace_back(test);
  return from;
}

void declare_data(CLI::App& app, DataOptions& options, const std::string& what) {
  app.add_option("data", options.files, what)->required();
  switch_on(app, "--skip-faulty", options.skip_faulty, "leave out lines that cannot be read, and count them");
  switch_on(app, "--json", options.json, "lines for machines");
}

void declare_training(CLI::App& app, TrainingOptions& options) {
  flag(app, "--test", options.test, "file whose samples are held out");
  flag(app, "--test-share", options.test_share, "share of the data that is held out without --test (default: 0.1)");
  flag(app, "--epochs", options.epochs, fmt::format("passes over the data (default: {})", options.epochs));
  flag(app, "--seed", options.seed, "of first values, order and what is held out (default: 1)");
  flag(app, "--start", options.start, "folder of a model of this learner, whose values are the first ones here");
  flag(app, "--output", options.output, "folder of the model (default: the data's name and .model)");
  flag(app, "--every", options.every, "epochs from one time that the model is kept to the next (default: 1)");
  switch_on(app, "--resume", options.resume, "go on from the folder's model, if it has one");
}

void declare_steps(CLI::App& app, TrainingOptions& options) {
  flag(app, "--schedule", options.schedule, "of the step size: sqrt, falling with the root of the epochs (default), or constant");
  flag(app, "--consistency", options.consistency,
       "how stale what members read may be: bsp (default), ssp:3, essp:3, cap:3, async (a name that is none lists all)");
}

void declare_rows(CLI::App& app, TrainingOptions& options) {
  switch_on(app, "--on-disk", options.on_disk, "keep rows in files without names in this folder, not in memory, and shuffle them a block at a time");
}

Action declare_use(CLI::App& app, const CLI::App* train, const std::string& what, const char* predict, const char* evaluate, Verbs verbs) {
  const auto options = std::make_shared<UseOptions>();
  const auto verb = [&](const char* name, const char* summary) {
    CLI::App* made = app.add_subcommand(name, summary);
    declare_data(*made, options->data, what);
    flag(*made, "--model", options->model, "folder that train left")->required();
    return made;
  };
  CLI::App* const predicts = verb("predict", predict);
  flag(*predicts, "--output", options->output, "write them into this file");
  verb("evaluate", evaluate);
  return [=, verbs = std::move(verbs)](const Words&) {
    if (train->parsed()) return verbs.train();
    return predicts->parsed() ? verbs.predict(*options) : verbs.evaluate(*options);
  };
}

void Course::describe(const learn::LabelledRows& rows, const TrainingOptions& options) {
  config["test_share"] = options.test.empty() ? options.test_share : 0;
  config["on_disk"] = options.on_disk;
  if (!options.start.empty()) config["start"] = options.start;
  if (!rows.classes.empty()) config["classes"] = rows.classes.size();
  config.update({{"columns", rows.columns}, {"rows", rows.count}, {"held_out", rows.held_out}, {"data", fmt::format("{:016x}", rows.digest)}});
  for (const auto& one : rows.read) read.push_back(data::sentence(one));
}

int train(const Course& course, const TrainingOptions& options, const net::Place& place) {
  const bool first = place.rank == 0;
  std::optional<learn::ModelFolder> folder;
  std::optional<learn::Tensors> start;
  if (!options.start.empty()) start = first ? first_values(course, options.start) : learn::Tensors{};
  if (first) {
    folder = opened(course, options);
    for (const auto& line : course.read) {
      if (!options.data.json) say(line + "\n");
    }
    if (options.data.json) say(course.config.dump() + "\n");
  }
  net::JoinOptions joining;
  joining.settings["program"] = "shoal " + course.command + " train";
  for (const auto& [name, value] : course.config.items()) joining.settings[name] = value.dump();
  joining.settings["training"] = fmt::format("{} epochs, kept every {}, {}, shared {}", options.epochs, options.every, options.consistency, options.sharing);
  const auto job = net::join(joining);
  Recording recording(place);

  Progress progress(first && !options.data.json);
  learn::Watching watching;
  watching.resumed = [&](unsigned epochs) {
    if (first && !options.data.json) say(fmt::format("goes on after epoch {}\n", epochs));
  };
  watching.progressed = [&](unsigned epoch, double part) {
    progress.at(fmt::format("epoch {} of {}", epoch, options.epochs), part);
    recording.bring();
  };
  // Outlives the catch below: its tables must not be left before the others know why. Gone before the recording, which is to have what they met.
  std::unique_ptr<learn::Learner> learner;
  std::string told;
  const auto tell_note = [&] {
    const std::string note = learner->note();
    if (first && note != told) say(options.data.json ? learn::Json{{"note", note}}.dump() + "\n" : note + "\n");
    told = note;
  };
  watching.learnt = [&](const learn::Epoch& epoch) {
    progress.clear();
    if (first) say(options.data.json ? learn::ModelFolder::to_line(epoch) : sentence(epoch, options.epochs));
    tell_note();
  };
  if (job->transport().on_peer_lost() == net::OnPeerLost::shrink) {
    throw Error(Code::unsupported, "a learner ends with the first member that is lost: others do not read its data", "SHOAL_ON_PEER_LOST", "fail");
  }
  try {
    constexpr std::uint16_t meeting = 9;  // a channel that nothing else uses
    const table::TablesOptions defaults;
    learner = course.begin(job->transport(), table::options_here(job->transport(), defaults.patience, defaults.channel, meeting));
    tell_note();
    learn::train(*learner, folder ? &*folder : nullptr, {options.epochs, options.every, options.resume}, watching, start);
  } catch (const Error& error) {
    net::call(job->transport(), [&] { job->transport().fail(error); });  // the others end with the same line
    throw;
  }
  if (first && !options.data.json) say("model in " + folder->path().string() + "\n");
  return 0;
}

void deliver(const std::string& text, const std::string& file) {
  if (!file.empty()) return write_aside(file, text);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace shoal::app
