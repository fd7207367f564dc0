#include "app/verdict.h"

#include <signal.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace shoal::app {
namespace {

bool saw_another_go(const Member& member) { return member.status == lost_a_peer && member.trouble.empty(); }

// The first member that failed. One that only lost a peer is a consequence, if another cause is known.
std::optional<unsigned> culprit_of(const std::vector<Member>& members, const std::vector<unsigned>& failures, Told told) {
  for (unsigned rank : failures) {
    if (!saw_another_go(members[rank]) && !as_told(members[rank], told)) return rank;
  }
  const auto obeyed = [&](const Member& member) { return member.ended && as_told(member, told); };
  if (failures.empty() || (told.by != 0 && std::any_of(members.begin(), members.end(), obeyed))) return {};
  return failures.front();
}

}  // namespace

bool succeeded(const Member& member) { return member.ended && member.status == 0; }

bool as_told(const Member& member, Told told) {
  if (told.by == 0) return false;
  const bool had_no_time = member.killed && (told.again || told.by != SIGTERM);
  return member.status == 0 || member.status == 128 + SIGTERM || had_no_time;
}

Verdict judge(const std::vector<Member>& members, const std::vector<unsigned>& failures, const Terms& terms) {
  const Told told = terms.told;
  if (terms.shrinks && told.by == 0 && std::ranges::any_of(members, succeeded)) return {};
  const auto culprit = culprit_of(members, failures, told);
  if (!culprit) return {culprit, told.by != 0 ? 128 + told.by : 0};
  // A signal is what happened to that member; what happened to the run is what the others say.
  const bool lost = members[*culprit].signal != 0 &&
      std::any_of(failures.begin(), failures.end(), [&](unsigned rank) { return members[rank].status == lost_a_peer; });
  return {culprit, lost ? lost_a_peer : members[*culprit].status};
}

std::string describe(const Member& member) {
  if (!member.trouble.empty()) return member.trouble;
  if (member.killed && member.signal == SIGKILL) return "it was told to end, did not, and was killed";
  return member.signal ? fmt::format("killed by signal {} ({})", member.signal, ::sigabbrev_np(member.signal))
                       : fmt::format("exit status {}", member.status);
}

}  // namespace shoal::app
