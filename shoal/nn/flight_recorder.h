// The last operations of this process's groups in PyTorch's flight recorder format, to read after a hang or a mismatch with
// torch.distributed.flight_recorder (torchfrtrace). PyTorch's own recorder is not exported from libtorch; this one writes the
// same dumps and obeys the same variables: TORCH_FR_BUFFER_SIZE operations are kept (unset or 0: none), and the first
// failure writes them to TORCH_FR_DUMP_TEMP_FILE<rank> unless TORCH_FR_DUMP_ON_TIMEOUT is 0.
//
// Threads: any. Lifetime: the process's.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace torch {
struct CapturedTraceback;
}

namespace shoal::nn {

class FlightRecorder {
 public:
  struct Operation {
    std::string group, description;             // PyTorch's name of the group
    std::string name;                           // "all_reduce", "send 0->1"
    std::uint64_t collective = 0, message = 0;  // their numbers in the group
    bool point_to_point = false;
    std::chrono::milliseconds timeout{};
    std::vector<at::Tensor> inputs, outputs;    // only sizes and types are kept
  };
  using Id = std::uint64_t;

  static FlightRecorder& local();
  bool on() const { return kept_ > 0; }
  void group(const std::string& name, const std::string& description, const std::vector<std::uint64_t>& ranks);
  // Where in the user's program it was called is kept too.
  Id began(const Operation& operation);
  void completed(Id id);
  std::string dump();                // pickled
  bool claim_dump();                 // true once in a process: its first failure is to be dumped
  void write(std::uint64_t rank);    // of the job

 private:
  struct Entry;
  FlightRecorder();

  const std::size_t kept_;
  const bool dumps_;
  std::atomic<bool> dumped_{false};
  std::mutex mutex_;  // guards all below
  std::deque<std::shared_ptr<Entry>> entries_;  // the latest; ids without gaps
  Id next_ = 0;
  std::map<std::string, std::pair<std::string, std::vector<std::uint64_t>>> groups_;  // name: description, ranks
};

}  // namespace shoal::nn
