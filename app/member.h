// One member as its launcher sees it: a process here, or an ssh whose keeper (far.h) has it on another host.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "shoal/net/descriptor.h"

namespace shoal::app {

inline constexpr int lost_a_peer = 3;  // exit status of a member that ended because another did

struct Member {
  pid_t pid = -1;         // on another host: of its ssh
  net::Descriptor streams[2];  // its out and err, until their end
  net::Descriptor log;
  unsigned generation = 0;  // of the run, in which it was started (net/again.h)
  bool ended = false;
  int status = 0;         // 0..255, or 128 + signal
  int signal = 0;
  bool told_to_end = false;
  bool killed = false;    // by the launcher, when its time to end was over

  net::Descriptor in;          // to its keeper on another host
  bool kept = false;      // the keeper has said that it is there
  std::string greeting;   // what came before it said so
  std::string trouble;    // with the other host, if that is why the member ended
};

// Killed by somebody else, or its host is gone.
inline bool was_lost(const Member& member) { return !member.told_to_end && (member.signal != 0 || !member.trouble.empty()); }

void tell_keeper(const Member& member, const std::string& line);
void signal_keeper(const Member& member, int signal);  // it passes the signal on
// Of what came on its out: what the member itself said.
std::string without_greeting(Member& member, std::string_view bytes);
// What the exit status of its ssh says of a member that has ended.
void judge_far(Member& member, const std::string& host);

}  // namespace shoal::app
