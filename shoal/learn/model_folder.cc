#include "shoal/learn/model_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "shoal/core/aside.h"
#include "shoal/core/error.h"
#include "shoal/data/lines.h"

namespace shoal::learn {
namespace {

namespace fs = std::filesystem;
constexpr const char *kConfig = "config.json", *kModel = "model.safetensors", *kMetrics = "metrics.jsonl";

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error(Code::invalid_argument, "cannot be read", file.string(), "is this a model's folder?");
  return {std::istreambuf_iterator<char>(in), {}};
}

Json parsed(const fs::path& file) try {
  return Json::parse(text_of(file));
} catch (const Json::exception&) {
  throw Error(Code::invalid_argument, "is no JSON", file.string(), "is this a model's folder?");
}

}  // namespace

bool ModelFolder::holds_model() const {
  std::error_code none;
  return fs::exists(file(kModel), none);
}

void ModelFolder::require_place() const {
  std::error_code none;
  fs::path there = path_;
  while (there.has_relative_path() && !fs::exists(there, none)) there = there.parent_path();
  if (there.empty() || fs::is_directory(there, none)) return;
  throw Error(Code::invalid_argument, "cannot be made: " + std::make_error_code(std::errc::not_a_directory).message(), path_.string(), "name another folder");
}

void ModelFolder::make() const {
  std::error_code error;
  fs::create_directories(path_, error);
  if (!error) return;
  const bool of_the_disk = error == std::errc::no_space_on_device || error == std::errc::io_error;
  throw Error(of_the_disk ? Code::io : Code::invalid_argument, "cannot be made: " + error.message(), path_.string(), "name another folder");
}

void ModelFolder::begin(const Json& config) {
  std::error_code error;
  make();
  hold();
  fs::remove(file(kModel), error);
  fs::remove(file(kMetrics), error);
  describe(config);
}

void ModelFolder::take_over(const Json& config) const {
  make();
  describe(config);
}

void ModelFolder::describe(const Json& config) const { write_aside(file(kConfig), to_text(config, 2) + "\n"); }

std::string ModelFolder::to_text(const Json& value, int indent) { return value.dump(indent, ' ', false, Json::error_handler_t::replace); }

void ModelFolder::require(const Json& config, const std::function<bool(const std::string& entry)>& may_differ) const {
  const Json kept = parsed(file(kConfig));
  for (const auto& [name, value] : config.items()) {
    const std::string before = kept.contains(name) ? kept[name].dump() : "not there", now = to_text(value);
    if (before == now || may_differ(name)) continue;
    throw Error(Code::invalid_argument, name + " is " + before + " in the model, " + now + " here", path_.string(),
                "go on with the model's data and options, or begin another model in another folder");
  }
}

// By a lock on the folder itself, which leaves nothing behind whatever becomes of the process. Where a file system has no locks there is none.
void ModelFolder::hold() {
  if (held_) return;
  const int folder = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  held_ = std::shared_ptr<const void>(nullptr, [folder](const void*) { ::close(folder); });
  if (::flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  held_.reset();
  throw Error(Code::invalid_argument, "another process trains into it", path_.string(), "wait for it, or name another folder with --output");
}

void ModelFolder::go_on(const Json& config) {
  hold();
  require(config, [](const std::string&) { return false; });
  const unsigned epochs = model().epochs;
  std::ifstream in(file(kMetrics));
  std::string line;
  for (unsigned epoch = 0; epoch < epochs && std::getline(in, line); ++epoch) metrics_ += line + "\n";
}

void ModelFolder::write_names(const std::string& name, const data::Names& names) const {
  std::string text;
  for (std::uint32_t number = 0; number < names.size(); ++number) {
    text += names[number];
    text += '\n';
  }
  write_aside(path_ / (name + ".txt"), text);
}

std::string ModelFolder::to_line(const Epoch& epoch) {
  Json line{{"epoch", epoch.number}};
  for (const auto& [name, value] : epoch.figures) line[name] = value;
  line["samples"] = epoch.samples;
  line["seconds"] = epoch.seconds;
  line["waited_s"] = epoch.waited;
  return line.dump() + "\n";
}

void ModelFolder::add(const Epoch& epoch, const Tensors& model) {
  add(epoch);
  write_aside(file(kMetrics), metrics_);
  write_tensor_file(file(kModel), {model, {{"epochs", std::to_string(epoch.number)}}});
}

Json ModelFolder::config(const std::string& learner) const {
  if (!holds_model()) throw Error(Code::invalid_argument, "holds no model", path_.string(), "shoal " + learner + " train makes one");
  Json config = parsed(file(kConfig));
  const std::string kind = config.is_object() && config.contains("learner") && config["learner"].is_string() ? config["learner"] : Json("none");
  if (kind != learner) throw Error(Code::invalid_argument, "holds a model of shoal " + kind, path_.string(), "a model of shoal " + learner + " is needed");
  return config;
}

KeptModel ModelFolder::model() const {
  TensorFile kept = read_tensor_file(file(kModel));
  const auto epochs = kept.metadata.find("epochs");
  if (epochs == kept.metadata.end() || epochs->second.empty() || epochs->second.size() > 9 ||
      epochs->second.find_first_not_of("0123456789") != std::string::npos) {
    throw Error(Code::invalid_argument, "does not say after how many epochs it was kept", file(kModel).string());
  }
  return {static_cast<unsigned>(std::stoul(epochs->second)), std::move(kept.tensors)};
}

std::optional<data::Names> ModelFolder::names(const std::string& name) const {
  const fs::path path = path_ / (name + ".txt");
  std::error_code none;
  if (!fs::exists(path, none)) return std::nullopt;
  data::Names names;
  data::Lines lines({path});
  for (std::string_view line; lines.next(line);) names.number(line);
  return names;
}

Error ModelFolder::damaged(const std::string& learner, const std::string& what) const {
  return {Code::invalid_argument, what, path_.string(), "is the folder as shoal " + learner + " train left it?"};
}

}  // namespace shoal::learn
