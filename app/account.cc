#include "app/account.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shoal/core/error.h"
#include "shoal/observe/finish.h"

namespace shoal::app {

void say_account(Console& console, const std::vector<Member>& members, const std::vector<unsigned>& failures, const Verdict& verdict, Told told,
                 const std::filesystem::path& folder) {
  const auto culprit = verdict.culprit;
  if (!culprit && told.by == 0) {
    for (const unsigned rank : failures) console.say(fmt::format("shoal: rank {} was lost: {}; the others went on", rank, describe(members[rank])));
  }
  if (culprit) {
    std::map<std::string, std::vector<unsigned>> said;  // one line for all who ended with the same words
    for (const unsigned rank : failures) {
      const auto& line = console.last_error(rank);
      if (rank != *culprit && !line.empty() && !as_told(members[rank], told)) said[line].push_back(rank);
    }
    for (auto& [line, ranks] : said) {
      std::ranges::sort(ranks);
      console.say(fmt::format("shoal: rank{} {} ended with: {}", ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", "), line));
    }
  }
  console.say(fmt::format("shoal: run folder {}", folder.string()));
  if (told.by != 0) console.say(fmt::format("shoal: ended by {}; every member has ended", ::sigabbrev_np(told.by)));
  if (culprit) {
    const auto& line = console.last_error(*culprit);
    console.say(fmt::format("shoal: rank {} failed first: {}{}", *culprit, describe(members[*culprit]), line.empty() ? "" : ": " + line));
  }
}

void report_recorded(Console& console, const std::filesystem::path& folder, bool failed) {
  try {
    const auto run = observe::RunFolder::open(folder);
    if (run.event_files().empty()) return;
    const observe::Finished finished = observe::finish_run(run);
    if (!failed && finished.account.steps > 0) console.say("shoal: " + observe::headline(finished.why));
  } catch (const Error& error) {
    console.say(fmt::format("shoal: no report: {}", error.what()));
  }
}

}  // namespace shoal::app
