// The end of a run: from what the members recorded to what people look at.
#pragma once

#include <filesystem>
#include <optional>

#include "shoal/observe/account.h"
#include "shoal/observe/causes.h"
#include "shoal/observe/run_folder.h"

namespace shoal::observe {

struct Finished {
  Account account;
  Explanation why;
  std::filesystem::path trace, report;
};

// Merges the members' events into events.jsonl, writes trace.json.gz, report.html and, where there is none, run.json; reads
// plan.json where there is one. Call it on one member, after all have closed their recorders. A second call gives the same.
// Throws Error{invalid_argument} where the folder holds no events, Error{io} where it cannot be written.
Finished finish_run(const RunFolder& folder);

// Only the account, of a finished run or one under way, and what it means. They write nothing.
Account account_of(const RunFolder& folder);
Explanation explain_run(const RunFolder& folder);

}  // namespace shoal::observe
