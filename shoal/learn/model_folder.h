// A model in a folder, as a learner leaves it and others find it:
//   config.json        which learner, its options, what it learnt from
//   model.safetensors  the tensors; its metadata say after how many epochs
//   metrics.jsonl      a line an epoch
//   NAME.txt           names of rows, columns or classes, a line each, in the order of their numbers
// Each file is there whole or not at all, and the model comes last. Used by one process; threads: one.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/data/names.h"
#include "shoal/learn/learner.h"

namespace shoal::learn {

using Json = nlohmann::ordered_json;

struct KeptModel {
  unsigned epochs = 0;
  Tensors tensors;
};

class ModelFolder {
 public:
  explicit ModelFolder(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path& path() const { return path_; }

  bool holds_model() const;
  // Throws Error{invalid_argument} where no folder can be, because there is a file: for who has much to do before begin().
  void require_place() const;
  // A new model of this configuration: what the folder had of another is taken away. Throws Error{io}, and Error{invalid_argument} while another
  // process trains into the folder; from here on, and from go_on(), others hear the same until this is gone with its copies.
  void begin(const Json& config);
  // The same folder in place of a process that is lost, which may still hold it, stopped: with this configuration, and all that it has.
  void take_over(const Json& config) const;
  // The configuration as it is by now, of the model that is there. Throws Error{io}.
  void describe(const Json& config) const;
  // Throws Error{invalid_argument} unless the folder's configuration is this one, naming the first entry that differs. Takes metrics over.
  void go_on(const Json& config);
  // Throws Error{invalid_argument} unless the folder's configuration is this one but for what may differ, naming the first entry that does.
  void require(const Json& config, const std::function<bool(const std::string& entry)>& may_differ) const;
  void write_names(const std::string& name, const data::Names& names) const;
  // Adds the epoch to the metrics and keeps the model.
  void add(const Epoch& epoch, const Tensors& model);
  void add(const Epoch& epoch) { metrics_ += to_line(epoch); }  // the model is kept with a later one

  // Throws Error{invalid_argument} for a folder without a model, or one of another learner.
  Json config(const std::string& learner) const;
  KeptModel model() const;
  // Of a folder that holds something, but not what that learner leaves.
  Error damaged(const std::string& learner, const std::string& what) const;
  // read(config), where what is missing or of another form, in config.json or among the tensors, is told as damaged().
  template <class Read>
  auto understood(const std::string& learner, const Read& read) const;
  // None where rows have numbers for names.
  std::optional<data::Names> names(const std::string& name) const;

  static std::string to_line(const Epoch& epoch);  // JSON, with its line break
  static std::string to_text(const Json& value, int indent = -1);  // what is not UTF-8 in it, in names of files, is replaced

 private:
  std::filesystem::path file(const char* name) const { return path_ / name; }
  void make() const;
  void hold();
  std::filesystem::path path_;
  std::string metrics_;  // all lines so far
  std::shared_ptr<const void> held_;
};

template <class Read>
auto ModelFolder::understood(const std::string& learner, const Read& read) const {
  const Json kept = config(learner);
  try {
    return read(kept);
  } catch (const Json::exception&) {
    throw damaged(learner, "config.json does not say what the model is");
  } catch (const Error& error) {
    throw error.code() == Code::mismatch ? damaged(learner, error.fact()) : error;
  }
}

}  // namespace shoal::learn
