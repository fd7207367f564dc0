// More members for a run that goes on: what `shoal join RUN` and the launcher of that run tell each other, by files in the folder RUN/join.
//
//   PID.request   by who asks: how many members, on which hosts
//   PID.answer    by the launcher, when it has started them: their ranks; or why it does not, in one line
//
// The folder is there while the launcher takes requests. One whose members cannot take others at the moment (net/again.h) is not answered until they can; who
// asks waits for that as long as it likes, and takes its request back. Files are written aside and renamed. Threads: one on each side.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/launcher.h"
#include "shoal/core/error.h"
#include "shoal/core/time.h"

namespace shoal::app {

struct JoinRequest {
  unsigned members = 1;
  std::string hosts;              // as --hosts has them; empty: none named
  std::filesystem::path file;     // as it lies at the launcher
};

// At the launcher.
class Joining {
 public:
  explicit Joining(const std::filesystem::path& run);
  ~Joining();
  Joining(const Joining&) = delete;
  std::optional<JoinRequest> look() const;              // the first that is not answered
  void answer(const JoinRequest& request, const std::string& ranks) const;
  void refuse(const JoinRequest& request, const Error& why) const;

 private:
  const std::filesystem::path folder_;
};

// The run with those that are asked for. Throws Error{invalid_argument} where they have no place.
Launch with_more(Launch what, const JoinRequest& request);

// By `shoal join`: their ranks, as text. Throws what the launcher says, Error{invalid_argument} where the run takes no members, Error{timeout} where nobody answers.
std::string ask_to_join(const std::filesystem::path& run, const JoinRequest& request, Nanoseconds patience);
bool takes_members(const std::filesystem::path& run);

}  // namespace shoal::app
