// One member's events as scalars in TensorBoard's files: its metrics as they came, and of each flush, over the time since the last,
//   samples_per_second (its own times the members)   exposed_share   received_MB_per_second/from_rank_N
//
// The axis counts steps taken as the metrics that say a step do. Where none does by the second flush, it goes on behind what the
// folder holds. So a training that was started again draws on, and what it does a second time replaces what was there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>

#include "shoal/observe/recorder.h"
#include "shoal/observe/tensorboard_file.h"

namespace shoal::observe {

class TensorBoard : public EventSink {
 public:
  // Throws Error{invalid_argument} where the folder cannot be written.
  TensorBoard(const std::filesystem::path& folder, Author who);

  void take(const std::vector<Event>& events) override;
  void close() override;

 private:
  struct Window {  // since the last scalars were derived
    std::optional<Instant> begin;
    Instant end{};
    std::int64_t steps = 0;  // that ended in it
    double samples = 0, exposed = 0;
    std::map<int, double> received;
  };

  bool place(bool now);
  void put(const std::vector<Event>& events);
  void note_step(const Event& event);
  void metric(const Event& event);
  void derive();
  void scalar(Instant at, std::int64_t step, const std::string& tag, double value);
  std::int64_t on_axis(std::int64_t iteration) const { return iteration + shift_; }
  double unix_seconds(Instant at) const;

  const Author who_;
  const std::optional<std::int64_t> before_;  // the last step of earlier files
  TensorBoardFile file_;
  std::vector<Event> held_;                // until their place on the axis is known
  int flushes_ = 0;                        // with steps, before that
  bool placed_ = false;
  std::optional<std::int64_t> iteration_;  // the latest
  std::int64_t shift_ = 1;                 // from iterations to the axis
  bool begun_ = false;
  Window window_;
};

}  // namespace shoal::observe
