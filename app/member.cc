#include "app/member.h"

#include <unistd.h>

#include "app/far.h"
#include "shoal/core/error.h"

namespace shoal::app {

void tell_keeper(const Member& member, const std::string& line) {
  (void)!::write(member.in.get(), line.data(), line.size());  // a pipe that is full means a connection that is lost: ssh sees to it
}

void signal_keeper(const Member& member, int signal) { tell_keeper(member, std::to_string(signal) + "\n"); }

std::string without_greeting(Member& member, std::string_view bytes) {
  if (!member.in || member.kept) return std::string(bytes);
  member.greeting += bytes;
  const auto words = member.greeting.find(keeper_is_there);
  if (words == std::string::npos) return "";
  member.kept = true;
  return member.greeting.substr(words + keeper_is_there.size());
}

void judge_far(Member& member, const std::string& host) {
  if (!member.kept) {
    member.trouble = "cannot start a member on host " + host + " (`ssh " + host +
                     "` must work without a question, and Shoal be there at the same path as here)";
    member.status = exit_code(Code::invalid_argument);
  } else if (member.signal != 0 || member.status == ssh_failed) {
    member.signal = 0;
    member.trouble = "lost the connection with host " + host;
    member.status = lost_a_peer;
  } else if (member.status > 128) {
    member.signal = member.status - 128;
  }
}

}  // namespace shoal::app
