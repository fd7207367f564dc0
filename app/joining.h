// More members for a run that goes on: what `shoal join RUN` and the launcher of that run tell each other, by files in the folder RUN/join.
//
//   launcher     locked by the launcher, while it takes requests: what a launcher that was killed has left is nobody's
//   NAME.request by who asks, and locked as long as it waits: how many members, on which hosts
//   NAME.answer  by the launcher, when they belong to the run: their ranks; or why they do not
//
// A request whose members cannot be taken at the moment (net/again.h) is not answered until they can; who asks waits for that as long as it likes. Threads: one on
// each side.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/launcher.h"
#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/net/descriptor.h"

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
  bool is_withdrawn(const JoinRequest& request) const;  // nobody waits for an answer any more
  void answer(const JoinRequest& request, const std::string& ranks) const;
  void refuse(const JoinRequest& request, const Error& why) const;

 private:
  const std::filesystem::path folder_;
  const net::Descriptor lock_;
};

// The run with those that are asked for. Throws Error{invalid_argument} where they have no place.
Launch with_more(Launch what, const JoinRequest& request);

// By `shoal join`: their ranks, as text. Throws what the launcher says, Error{invalid_argument} where the run takes no members, Error{timeout} where nobody answers.
std::string ask_to_join(const std::filesystem::path& run, const JoinRequest& request, Nanoseconds patience);
bool takes_members(const std::filesystem::path& run);

}  // namespace shoal::app
