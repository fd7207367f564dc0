// What a launcher says when a run has ended: who was lost, who failed first and with which words, and where the run's folder is.
#pragma once

#include <filesystem>
#include <vector>

#include "app/console.h"
#include "app/verdict.h"

namespace shoal::app {

// `failures`: ranks of members that ended with a status, as they were noticed.
void say_account(Console& console, const std::vector<Member>& members, const std::vector<unsigned>& failures, const Verdict& verdict, Told told,
                 const std::filesystem::path& folder);
// What members recorded and did not report themselves: a script's run, or one that failed.
void report_recorded(Console& console, const std::filesystem::path& folder, bool failed);

}  // namespace shoal::app
