// How a run ended: whose fault it was, and the exit status that says so. Pure: from what the members did, in the order in which it was
// noticed.
//
// A run that was told to end has ended as it was told if every member did: by TERM (it had nothing to save), with 143 (it has saved)
// or with 0. A member that lost another on the way is no fault where others ended as they were told: it saw them go. Any other end
// is one, as in a run that nobody told to end: a save that failed, a member that somebody else killed, or one that did not end in
// the time that TERM gives it to save.
//
// Where members go on without those that are lost, a run has done its work if one of them says so; where others come in their places, if all do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/member.h"

namespace shoal::app {

struct Told {
  int by = 0;          // the signal that told the launcher to end; 0: nobody did
  bool again = false;  // and did not wait for those who take their time
};

struct Verdict {
  std::optional<unsigned> culprit;  // the rank that failed first, if any did
  // 0; or 128 + n if all ended as signal n told them; or that of the culprit (for one that was killed by signal n 3 if others
  // ended because they lost it, else 128 + n).
  int status = 0;
};

bool succeeded(const Member& member);
bool as_told(const Member& member, Told told);
struct Terms {
  Told told;
  bool shrinks = false;  // members go on without those that are lost, and do their work
};
// `failures`: ranks of members that ended with a status, as they were noticed.
Verdict judge(const std::vector<Member>& members, const std::vector<unsigned>& failures, const Terms& terms);
std::string describe(const Member& member);  // its end, in words

}  // namespace shoal::app
