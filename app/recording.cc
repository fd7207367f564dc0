#include "app/recording.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace shoal::app {

Recording::Recording(const net::Place& place) {
  const char* const folder = std::getenv("SHOAL_RUN_DIR");
  if (!folder || !*folder) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // on another host; a mistake shows as it is opened
  recorder_.emplace(observe::RunFolder::open(folder), static_cast<int>(place.rank), static_cast<int>(place.size));
}

void Recording::bring() {
  if (!recorder_ || steady_now() < next_) return;
  recorder_->flush();
  next_ = steady_now() + std::chrono::seconds(1);
}

}  // namespace shoal::app
