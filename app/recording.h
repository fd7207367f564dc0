// What happens to this member goes to the folder that `shoal run` gave the run (SHOAL_RUN_DIR), for `shoal explain`: of commands that train without PyTorch.
// Nothing where there is no such folder. Threads: one at a time.
#pragma once

#include <optional>

#include "shoal/core/time.h"
#include "shoal/net/job.h"
#include "shoal/observe/recorder.h"

namespace shoal::app {

class Recording {
 public:
  explicit Recording(const net::Place& place);  // outlives the tables that tell it what they met
  void bring();                                 // now and then; it writes once a second at most

 private:
  std::optional<observe::Recorder> recorder_;
  Instant next_{};
};

}  // namespace shoal::app
