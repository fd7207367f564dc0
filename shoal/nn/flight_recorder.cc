#include "shoal/nn/flight_recorder.h"

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/distributed/c10d/FlightRecorder.hpp>
#include <torch/csrc/profiler/combined_traceback.h>

#include <algorithm>
#include <thread>

namespace shoal::nn {
namespace {

using Dict = c10::Dict<c10::IValue, c10::IValue>;

struct TensorShape {
  std::vector<std::int64_t> sizes;
  c10::ScalarType type;
};

std::vector<TensorShape> shapes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<TensorShape> shapes;
  for (const at::Tensor& tensor : tensors) shapes.push_back({tensor.sizes().vec(), tensor.scalar_type()});
  return shapes;
}

// Under `prefix`_sizes and `prefix`_dtypes.
void put_shapes(Dict& dict, const std::string& prefix, const std::vector<TensorShape>& shapes) {
  auto sizes = c10d::new_list();
  std::vector<std::string> types;
  for (const TensorShape& shape : shapes) {
    auto list = c10d::new_list();
    for (const std::int64_t size : shape.sizes) list.push_back(size);
    sizes.push_back(list);
    types.emplace_back(c10::toString(shape.type));
  }
  dict.insert(prefix + "_sizes", sizes);
  dict.insert(prefix + "_dtypes", types);
}

std::string show(const std::vector<std::uint64_t>& ranks) {  // as Python shows a list
  std::string text;
  for (const std::uint64_t rank : ranks) text += (text.empty() ? "[" : ", ") + std::to_string(rank);
  return text + "]";
}

c10::IValue frames_of(const std::shared_ptr<torch::CapturedTraceback>& where) {
  auto frames = c10d::new_list();
  const auto symbolized = torch::symbolize({where.get()});
  for (const std::uint64_t frame : symbolized.tracebacks.at(0)) {
    auto dict = c10d::new_dict();
    dict.insert(c10d::name_key, symbolized.all_frames.at(frame).funcname);
    dict.insert(c10d::filename_key, symbolized.all_frames.at(frame).filename);
    dict.insert(c10d::line_key, static_cast<std::int64_t>(symbolized.all_frames.at(frame).lineno));
    frames.push_back(dict);
  }
  return frames;
}

}  // namespace

struct FlightRecorder::Entry {
  Id id = 0;
  Operation operation;  // its tensors are let go
  std::vector<TensorShape> inputs, outputs;
  std::int64_t created_ns = 0;
  std::atomic<std::int64_t> completed_ns{0};
  std::string thread;
  std::shared_ptr<torch::CapturedTraceback> where;
};

FlightRecorder::FlightRecorder()
    : kept_(static_cast<std::size_t>(std::max(0, c10d::getCvarInt({"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}, 0)))),
      dumps_(c10d::getCvarBool({"TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT"}, true)) {}

FlightRecorder& FlightRecorder::local() {
  static auto* const recorder = new FlightRecorder;  // never freed: threads may outlive static objects
  return *recorder;
}

void FlightRecorder::group(const std::string& name, const std::string& description, const std::vector<std::uint64_t>& ranks) {
  const std::lock_guard lock(mutex_);
  groups_[name] = {description, ranks};
}

FlightRecorder::Id FlightRecorder::began(const Operation& operation) {
  auto entry = std::make_shared<Entry>();
  entry->operation = operation;
  entry->operation.inputs.clear();
  entry->operation.outputs.clear();
  entry->inputs = shapes_of(operation.inputs);
  entry->outputs = shapes_of(operation.outputs);
  entry->created_ns = c10::getTime();
  entry->thread = c10::str(std::this_thread::get_id());
  entry->where = torch::CapturedTraceback::gather(/*python=*/true, /*script=*/true, /*cpp=*/false);
  std::shared_ptr<Entry> oldest;  // let go outside the lock: its frames are Python's
  const std::lock_guard lock(mutex_);
  entry->id = next_++;
  entries_.push_back(entry);
  if (entries_.size() > kept_) {
    oldest = std::move(entries_.front());
    entries_.pop_front();
  }
  return entry->id;
}

void FlightRecorder::completed(Id id) {
  const std::lock_guard lock(mutex_);
  if (entries_.empty() || id < entries_.front()->id) return;  // it was long ago
  entries_[id - entries_.front()->id]->completed_ns = c10::getTime();
}

std::string FlightRecorder::dump() {
  std::vector<std::shared_ptr<Entry>> entries;
  auto groups = c10d::new_dict();
  {
    const std::lock_guard lock(mutex_);
    entries.assign(entries_.begin(), entries_.end());
    for (const auto& [name, group] : groups_) {
      auto dict = c10d::new_dict();
      dict.insert("name", name);
      dict.insert("desc", group.first);
      dict.insert("ranks", show(group.second));
      groups.insert(name, dict);
    }
  }
  auto list = c10d::new_list();
  for (const auto& entry : entries) {
    const Operation& operation = entry->operation;
    const std::int64_t completed = entry->completed_ns;
    auto dict = c10d::new_dict();
    dict.insert(c10d::record_id_key, static_cast<std::int64_t>(entry->id));
    dict.insert(c10d::pg_id_key, std::int64_t{0});
    dict.insert(c10d::pg_name_key, std::make_tuple(operation.group, operation.description));
    dict.insert(c10d::thread_id_key, entry->thread);
    dict.insert(c10d::collective_seq_id_key, static_cast<std::int64_t>(operation.collective));
    dict.insert(c10d::p2p_seq_id_key, static_cast<std::int64_t>(operation.message));
    dict.insert(c10d::op_id_key, static_cast<std::int64_t>(operation.point_to_point ? operation.message : operation.collective));
    // The reading tools know the names of PyTorch's own backends alone.
    dict.insert(c10d::profiling_name_key, "gloo:" + operation.name);
    dict.insert(c10d::time_created_key, entry->created_ns);
    dict.insert(c10d::time_discovered_started_key, entry->created_ns);
    dict.insert(c10d::time_discovered_completed_key, completed ? c10::IValue(completed) : c10::IValue());
    dict.insert(c10d::state_key, completed ? c10d::completed_state : c10d::started_state);
    if (completed) dict.insert(c10d::duration_key, static_cast<double>(completed - entry->created_ns) / 1e6);
    dict.insert(c10d::retired_key, completed != 0);
    dict.insert(c10d::timeout_key, static_cast<std::int64_t>(operation.timeout.count()));
    dict.insert(c10d::is_p2p_key, operation.point_to_point);
    put_shapes(dict, "input", entry->inputs);
    put_shapes(dict, "output", entry->outputs);
    dict.insert(c10d::frames_key, frames_of(entry->where));
    list.push_back(dict);
  }
  auto whole = c10d::new_dict();
  whole.insert(c10d::version_key, c10d::version_val);
  whole.insert(c10d::comm_lib_version_key, "shoal");
  whole.insert(c10d::pg_config_key, groups);
  whole.insert(c10d::entries_key, list);
  return c10d::pickle_str(whole);
}

bool FlightRecorder::claim_dump() { return on() && dumps_ && !dumped_.exchange(true); }

void FlightRecorder::write(std::uint64_t rank) { c10d::DebugInfoWriter::getWriter(static_cast<int>(rank)).write(dump()); }

}  // namespace shoal::nn
