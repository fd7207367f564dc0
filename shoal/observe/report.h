// report.html: one page that explains a run, without any file or address beside it. Headline figures, where the time of each
// member went, the run step by step, a timeline to zoom into (compute against links), the tables, the metrics as curves.
//
// The page holds at most kMostSpans spans: a window of whole steps around the middle of the run, and says so. The run as a
// whole is drawn from at most kMostBins means. Everything else is in trace.json.gz.
#pragma once

#include <string>

#include "shoal/observe/account.h"
#include "shoal/observe/causes.h"
#include "shoal/observe/run_events.h"

namespace shoal::observe {

constexpr std::size_t kMostSpans = 60'000;
constexpr std::size_t kMostBins = 400;

// The page as text. `title`: the run's name.
std::string report_of(const std::string& title, const RunEvents& run, const Account& account, const Explanation& why);

// The part of it that is data (JSON), for tests.
std::string report_data(const std::string& title, const RunEvents& run, const Account& account, const Explanation& why,
                        std::size_t most_spans = kMostSpans);

}  // namespace shoal::observe
