#include "shoal/observe/run_events.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "shoal/core/aside.h"
#include "shoal/core/error.h"

namespace shoal::observe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestLine = 1 << 20;
constexpr std::uint64_t kMostEvents = 16'000'000;  // of all members together: about 1 GB of memory

// Collects the lines of files into a RunEvents.
class Collector {
 public:
  explicit Collector(RunEvents& run) : run_(run) { ids_.emplace("", 0); }

  void read(const fs::path& file) {
    const std::string name = file.filename();
    std::error_code none;
    if (!fs::is_regular_file(file, none)) {  // a pipe would never open
      run_.remarks.push_back(name + ": is no plain file and is left out");
      return;
    }
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      run_.remarks.push_back(fmt::format("{}: cannot be read and is left out: {}", name, std::strerror(errno)));
      return;
    }
    std::string line;
    FileHeader header;
    if (!next_line(in, line) || !parse_header(line, header)) {
      run_.remarks.push_back(name + ":1: is not the header of an event file; the file is left out");
      return;
    }
    if (!take(header)) {
      run_.remarks.push_back(name + ":1: is of a rank that another file has; the file is left out");
      return;
    }
    ParsedLine parsed;
    std::uint64_t number = 1, damaged = 0, first_damaged = 0;
    bool cut_off = false;
    while (next_line(in, line)) {
      ++number;
      const int rank = parse_line(line, parsed) ? (header.merged ? parsed.rank : header.authors.front().rank) : -1;
      const auto slot = slots_.find(rank);
      if (slot == slots_.end()) {
        if (damaged++ == 0) first_damaged = number;
        cut_off = in.eof();
        continue;
      }
      if (events_ == kMostEvents) {
        run_.remarks.push_back(fmt::format("{}:{}: the rest is left out: only {} events are read", name, number, kMostEvents));
        break;
      }
      ++events_;
      parsed.event.name = id_of(parsed.name);
      run_.ranks[slot->second].events.push_back(parsed.event);
    }
    if (damaged == 1 && cut_off) {
      run_.remarks.push_back(fmt::format("{}:{}: the last line is cut off and left out", name, first_damaged));
    } else if (damaged > 0) {
      run_.remarks.push_back(
          fmt::format("{}:{}: is not an event; lines like it that are left out: {}", name, first_damaged, damaged));
    }
  }

 private:
  // False at the end. A line that is too long is cut: it parses as nothing.
  static bool next_line(std::istream& in, std::string& line) {
    line.clear();
    for (int c = in.get(); c != std::char_traits<char>::eof(); c = in.get()) {
      if (c == '\n' || line.size() == kLongestLine) return true;
      line += static_cast<char>(c);
    }
    return !line.empty();
  }

  // False where a member is there already.
  bool take(const FileHeader& header) {
    for (const Author& author : header.authors) {
      if (slots_.contains(author.rank)) return false;
      slots_[author.rank] = run_.ranks.size();
      run_.ranks.push_back({author, {}});
      run_.size = std::max(run_.size, author.size);
    }
    run_.remarks.insert(run_.remarks.end(), header.remarks.begin(), header.remarks.end());
    if (header.merged) run_.unix_begin_ns = header.unix_begin_ns;
    return true;
  }

  std::uint32_t id_of(const std::string& name) {
    const auto [found, is_new] = ids_.try_emplace(name, static_cast<std::uint32_t>(run_.names.size()));
    if (is_new) run_.names.push_back(name);
    return found->second;
  }

  RunEvents& run_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::map<int, std::size_t> slots_;  // of a rank in run_.ranks
  std::uint64_t events_ = 0;
};

void shift(std::vector<Event>& events, std::int64_t by) {
  for (Event& event : events) {
    event.begin += Nanoseconds(by);
    event.end += Nanoseconds(by);
  }
}

// From each member's steady clock to nanoseconds since the first event.
void align_clocks(RunEvents& run) {
  std::map<std::string, std::int64_t> offset_of_boot;  // the first member's of each machine
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  const auto offset_of = [&](const Author& who) {
    if (who.boot.empty()) return who.unix_minus_steady_ns;
    return offset_of_boot.try_emplace(who.boot, who.unix_minus_steady_ns).first->second;
  };
  for (RankEvents& rank : run.ranks) {
    shift(rank.events, offset_of(rank.who));
    for (const Event& event : rank.events) first = std::min(first, event.begin.time_since_epoch().count());
  }
  run.unix_begin_ns = first == std::numeric_limits<std::int64_t>::max() ? 0 : first;
  for (RankEvents& rank : run.ranks) shift(rank.events, -run.unix_begin_ns);
}

std::string describe_clocks(const RunEvents& run) {
  std::set<std::string> boots;
  for (const RankEvents& rank : run.ranks) boots.insert(rank.who.boot);
  if (boots.size() <= 1 && !boots.contains("")) return "All members share one machine's clock.";
  return fmt::format("Clocks of {} machines are aligned through unix time: as exact as their wall clocks agree.", boots.size());
}

}  // namespace

RunEvents read_run(const RunFolder& folder) {
  RunEvents run;
  Collector collector(run);
  const std::vector<fs::path> files = folder.event_files();
  const fs::path merged = folder.path() / "events.jsonl";
  if (!files.empty()) {
    for (const fs::path& file : files) collector.read(file);
  } else if (fs::exists(merged)) {
    collector.read(merged);
  }
  if (run.ranks.empty()) {
    throw Error(Code::invalid_argument, run.remarks.empty() ? "has no event files" : run.remarks.front(),
                folder.path().string(), "is this the folder of a run of Shoal?");
  }
  std::sort(run.ranks.begin(), run.ranks.end(), [](const auto& a, const auto& b) { return a.who.rank < b.who.rank; });
  if (!files.empty()) {
    align_clocks(run);
    std::set<int> here;
    for (const RankEvents& rank : run.ranks) here.insert(rank.who.rank);
    for (int rank = 0; rank < run.size; ++rank) {
      if (!here.contains(rank)) run.remarks.push_back(fmt::format("rank {} left no events in this folder", rank));
    }
  }
  for (RankEvents& rank : run.ranks) {
    std::stable_sort(rank.events.begin(), rank.events.end(), [](const Event& a, const Event& b) { return a.begin < b.begin; });
  }
  run.clocks = describe_clocks(run);
  return run;
}

void write_merged(const RunFolder& folder, const RunEvents& run) {
  constexpr std::size_t kChunk = 1 << 20;
  write_aside(folder.path() / "events.jsonl", [&](const fs::path& aside) {
    std::ofstream out(aside, std::ios::binary);
    FileHeader header;
    header.merged = true;
    header.unix_begin_ns = run.unix_begin_ns;
    header.remarks = run.remarks;
    for (const RankEvents& rank : run.ranks) header.authors.push_back(rank.who);
    std::string text = to_line(header);
    std::vector<std::size_t> next(run.ranks.size(), 0);
    while (true) {
      // The rank whose next event is earliest; few ranks, so a look at each.
      std::optional<std::size_t> earliest;
      for (std::size_t i = 0; i < run.ranks.size(); ++i) {
        const auto& events = run.ranks[i].events;
        if (next[i] == events.size()) continue;
        if (!earliest || events[next[i]].begin < run.ranks[*earliest].events[next[*earliest]].begin) earliest = i;
      }
      if (!earliest) break;
      const Event& event = run.ranks[*earliest].events[next[*earliest]++];
      append_line(text, event, run.name_of(event), run.ranks[*earliest].who.rank);
      if (text.size() > kChunk) {
        out << text;
        text.clear();
      }
    }
    out << text;
    out.close();
    if (!out) throw Error(Code::io, std::string("cannot be written: ") + std::strerror(errno), "events.jsonl");
  });
  std::error_code ignored;  // a file that stays is only read again
  for (const fs::path& file : folder.event_files()) fs::remove(file, ignored);
}

}  // namespace shoal::observe
