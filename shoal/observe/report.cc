#include "shoal/observe/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "shoal/observe/report_page.h"
#include "shoal/observe/trace.h"

namespace shoal::observe {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr int kReportLanes = 24;  // of exchanges that lie side by side in one member's timeline
constexpr std::size_t kMostMetrics = 12;

double seconds(Instant at) { return Seconds(at.time_since_epoch()).count(); }
Ordered finite(double value) { return std::isfinite(value) ? Ordered(value) : Ordered(nullptr); }

Ordered spent_json(const TimeSpent& spent) {
  return {spent.forward, spent.backward, spent.optimizer, spent.network, spent.waiting, spent.other};
}

// --- the run step by step

// Means over the members of one step's forward, backward, optimizer, network and waiting, in seconds; steps are binned so
// that there are at most kMostBins.
Ordered steps_json(const RunEvents& run) {
  std::map<std::int64_t, std::array<double, 5>> by_step;
  for (const RankEvents& rank : run.ranks) {
    for (const Event& event : rank.events) {
      int part = -1;
      if (event.kind == EventKind::forward) part = 0;
      if (event.kind == EventKind::backward) part = 1;
      if (event.kind == EventKind::optimizer) part = 2;
      if (event.kind == EventKind::exposed) part = event.peer < 0 ? 3 : 4;
      if (part >= 0 && event.step >= 0)
        by_step[event.step][static_cast<std::size_t>(part)] += Seconds(event.end - event.begin).count();
    }
  }
  const std::size_t per_bin = std::max<std::size_t>(1, (by_step.size() + kMostBins - 1) / kMostBins);
  Ordered bins = Ordered::array();
  auto step = by_step.begin();
  while (step != by_step.end()) {
    const std::int64_t first = step->first;
    std::array<double, 5> sums{};
    std::size_t count = 0;
    for (; count < per_bin && step != by_step.end(); ++count, ++step) {
      for (std::size_t part = 0; part < sums.size(); ++part) sums[part] += step->second[part];
    }
    Ordered bin = {first};
    for (const double sum : sums) bin.push_back(sum / static_cast<double>(count * run.ranks.size()));
    bins.push_back(bin);
  }
  return bins;
}

// --- the timeline

struct Window {
  Instant begin, end;  // half-open: what begins at `end` is the next step's
  std::int64_t first_step, last_step;  // -1: the run has no steps
  bool whole;
};

bool in_timeline(const Event& event) {
  switch (event.kind) {
    case EventKind::metric:
    case EventKind::note:
    case EventKind::planning:
    case EventKind::recording:
    case EventKind::collective: return false;
    default: return true;
  }
}

// All of the run where it fits; else whole steps around the middle one, as many as fit.
Window choose_window(const RunEvents& run, std::size_t most_spans) {
  std::vector<Instant> begins;
  std::map<std::int64_t, Instant> step_begins;
  Instant last{};
  for (const RankEvents& rank : run.ranks) {
    for (const Event& event : rank.events) {
      if (!in_timeline(event)) continue;
      begins.push_back(event.begin);
      last = std::max(last, event.end + Nanoseconds(1));
      if (event.kind != EventKind::forward && event.kind != EventKind::backward) continue;
      if (event.step < 0) continue;
      const auto [step, is_new] = step_begins.try_emplace(event.step, event.begin);
      if (!is_new) step->second = std::min(step->second, event.begin);
    }
  }
  std::sort(begins.begin(), begins.end());
  const Instant first = begins.empty() ? Instant{} : begins.front();
  if (begins.size() <= most_spans) {
    const bool stepped = !step_begins.empty();
    return {first, last, stepped ? step_begins.begin()->first : -1, stepped ? step_begins.rbegin()->first : -1, true};
  }
  if (step_begins.size() < 2) return {first, begins[most_spans], -1, -1, false};
  const std::vector<std::pair<std::int64_t, Instant>> steps(step_begins.begin(), step_begins.end());
  const auto count_between = [&](std::size_t from, std::size_t to) {  // spans of steps [from, to)
    const Instant end = to < steps.size() ? steps[to].second : last;
    return static_cast<std::size_t>(std::lower_bound(begins.begin(), begins.end(), end) -
                                    std::lower_bound(begins.begin(), begins.end(), steps[from].second));
  };
  std::size_t from = steps.size() / 2, to = from + 1;
  while (true) {
    const bool earlier = from > 0 && count_between(from - 1, to) <= most_spans;
    if (earlier) --from;
    const bool later = to < steps.size() && count_between(from, to + 1) <= most_spans;
    if (later) ++to;
    if (!earlier && !later) break;
  }
  return {steps[from].second, to < steps.size() ? steps[to].second : last, steps[from].first, steps[to - 1].first, false};
}

// A member's spans by track. A span is [begin, length, name, step, peer, value, lane]; begin counts from the window's.
// The most that one step may hold is bounded too: what is beyond `room` is left out and counted.
Ordered member_timeline(const RankEvents& rank, const Window& window, std::size_t& room, std::size_t& left_out) {
  Ordered compute = Ordered::array(), waits = Ordered::array(), exchanges = Ordered::array(), sent = Ordered::array(),
       received = Ordered::array(), produced = Ordered::array();
  std::vector<Instant> lanes;
  for (const Event& event : rank.events) {
    if (!in_timeline(event) || event.begin < window.begin || event.begin >= window.end) continue;
    if (room == 0) {
      ++left_out;
      continue;
    }
    --room;
    Ordered span = {std::round((seconds(event.begin) - seconds(window.begin)) * 1e7) / 1e7,
                 std::round(Seconds(event.end - event.begin).count() * 1e7) / 1e7};
    switch (event.kind) {
      case EventKind::forward:
      case EventKind::backward:
      case EventKind::optimizer:
        span.insert(span.end(), {static_cast<int>(event.kind), event.step});
        compute.push_back(span);
        break;
      case EventKind::exposed:
        span.insert(span.end(), {event.name, event.step, event.peer});
        waits.push_back(span);
        break;
      case EventKind::produced:
        span.insert(span.end(), {event.name, event.step, event.value});
        produced.push_back(span);
        break;
      case EventKind::exchange:
        span.insert(span.end(), {event.name, event.step, event.value, free_lane(lanes, event, kReportLanes)});
        exchanges.push_back(span);
        break;
      default:
        span.insert(span.end(), {event.peer, event.value});
        (event.kind == EventKind::sent ? sent : received).push_back(span);
    }
  }
  return {{"rank", rank.who.rank}, {"lanes", lanes.size()},  {"compute", compute}, {"waits", waits},
          {"produced", produced},  {"exchanges", exchanges}, {"sent", sent},       {"received", received}};
}

Ordered timeline_json(const RunEvents& run, std::size_t most_spans) {
  const Window window = choose_window(run, most_spans);
  std::size_t room = most_spans, left_out = 0;
  Ordered members = Ordered::array();
  for (const RankEvents& rank : run.ranks) members.push_back(member_timeline(rank, window, room, left_out));
  std::string says;
  if (!window.whole) {
    says =
        window.first_step < 0 ? "the beginning of the run" : fmt::format("steps {} to {}", window.first_step, window.last_step);
    if (left_out > 0) says += fmt::format(", without {} spans of the last members", left_out);
  }
  return {{"begin", seconds(window.begin)},
          {"seconds", seconds(window.end) - seconds(window.begin)},
          {"left_out", says},
          {"members", members}};
}

// --- metrics

// Series of the first member that has them: by name, pairs of step (or second, without steps) and value.
Ordered metrics_json(const RunEvents& run) {
  for (const RankEvents& rank : run.ranks) {
    std::map<std::string, std::vector<std::pair<double, double>>> series;
    for (const Event& event : rank.events) {
      if (event.kind != EventKind::metric) continue;
      if (!series.contains(run.name_of(event)) && series.size() == kMostMetrics) continue;
      series[run.name_of(event)].emplace_back(event.step >= 0 ? static_cast<double>(event.step) : seconds(event.begin),
                                              event.value);
    }
    if (series.empty()) continue;
    Ordered all = Ordered::array();
    for (const auto& [name, points] : series) {
      const std::size_t every = (points.size() + 4 * kMostBins - 1) / (4 * kMostBins);
      Ordered kept = Ordered::array();
      for (std::size_t i = 0; i < points.size(); i += every) kept.push_back({points[i].first, finite(points[i].second)});
      if ((points.size() - 1) % every != 0) kept.push_back({points.back().first, finite(points.back().second)});
      all.push_back({{"name", name}, {"points", kept}});
    }
    return all;
  }
  return Ordered::array();
}

// --- tables

Ordered tables_json(const Account& account) {
  Ordered ranks = Ordered::array(), tensors = Ordered::array(), links = Ordered::array();
  for (const RankAccount& rank : account.ranks) {
    Ordered waited = Ordered::array();
    for (const auto& [peer, time] : rank.waited_for) waited.push_back({peer, time});
    ranks.push_back({{"rank", rank.rank},
                     {"host", rank.host},
                     {"spent", spent_json(rank.spent)},
                     {"waited_for", waited},
                     {"hidden", rank.hidden ? Ordered(*rank.hidden) : Ordered(nullptr)}});
  }
  for (const TensorAccount& tensor : account.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"way", tensor.way},
                       {"bytes", tensor.bytes},
                       {"sent", tensor.sent},
                       {"exchanges", tensor.exchanges},
                       {"seconds", tensor.seconds},
                       {"exposed", tensor.exposed},
                       {"waited", tensor.waited},
                       {"hidden", tensor.hidden},
                       {"predicted", tensor.predicted_exposed ? Ordered(*tensor.predicted_exposed) : Ordered(nullptr)}});
  }
  for (const LinkAccount& link : account.links) {
    links.push_back({link.from, link.to, link.bytes, link.rate(), link.fastest});
  }
  return {{"ranks", ranks}, {"tensors", tensors}, {"links", links}};
}

}  // namespace

std::string report_data(const std::string& title, const RunEvents& run, const Account& account, const Explanation& why,
                        std::size_t most_spans) {
  Ordered data = {{"title", title},
               {"unix_begin", static_cast<double>(run.unix_begin_ns) * 1e-9},
               {"size", run.size},
               {"steps", account.steps},
               {"seconds_a_step", account.seconds_a_step()},
               {"hidden", account.hidden ? Ordered(*account.hidden) : Ordered(nullptr)},
               {"mean", spent_json(account.mean)},
               {"why", headline(why)},
               {"clocks", account.clocks},
               {"remarks", account.remarks},
               {"notes", account.notes},
               {"names", run.names},
               {"per_step", steps_json(run)},
               {"metrics", metrics_json(run)},
               {"timeline", timeline_json(run, most_spans)}};
  data.update(tables_json(account));
  return data.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

std::string report_of(const std::string& title, const RunEvents& run, const Account& account, const Explanation& why) {
  std::string data = report_data(title, run, account, why);
  // Inside of <script>, "</" would end it, whatever the JSON says.
  for (std::size_t at = data.find("</"); at != std::string::npos; at = data.find("</", at + 3)) data.insert(at + 1, "\\");
  return std::string(kReportBefore) + data + std::string(kReportAfter);
}

}  // namespace shoal::observe
