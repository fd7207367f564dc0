#include "shoal/observe/trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "shoal/core/aside.h"
#include "shoal/core/error.h"

namespace shoal::observe {
namespace {

constexpr int kTraceLanes = 64;

// Track numbers inside a member's process; they are also the order in which viewers show them.
enum Track { kCompute = 1, kWaits = 2, kExchange = 10, kWire = 1000 };

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class GzipFile {
 public:
  explicit GzipFile(const std::filesystem::path& path) : file_(::gzopen(path.c_str(), "wb6")) { check(file_ != nullptr); }
  ~GzipFile() {
    if (file_) ::gzclose(file_);
  }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  void write(const std::string& text) {
    if (!text.empty()) check(::gzwrite(file_, text.data(), static_cast<unsigned>(text.size())) > 0);
  }
  void close() { check(::gzclose(std::exchange(file_, nullptr)) == Z_OK); }

 private:
  static void check(bool fine) {
    if (!fine) throw Error(Code::io, "cannot be written; is the disk full?", "trace.json.gz");
  }
  gzFile file_;
};

double micros(Instant at) { return static_cast<double>(at.time_since_epoch().count()) / 1e3; }

// The trace of one member, event by event.
class MemberTrace {
 public:
  MemberTrace(const RunEvents& run, const RankEvents& rank, GzipFile& out) : run_(run), rank_(rank), out_(out) {}

  void write() {
    meta("process_name", 0, fmt::format("rank {} ({})", rank_.who.rank, rank_.who.host));
    fmt::format_to(into(), R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})", rank_.who.rank);
    name_track(kCompute, "compute");
    name_track(kWaits, "waiting");
    for (const Event& event : rank_.events) {
      put(event);
      if (text_.size() > 1 << 20) flush();
    }
    flush();
  }

 private:
  std::back_insert_iterator<std::string> into() {
    text_ += ",\n";
    return std::back_inserter(text_);
  }

  void flush() {
    out_.write(text_);
    text_.clear();
  }

  void meta(const char* what, int track, const std::string& value) {
    fmt::format_to(into(), R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, rank_.who.rank, track,
                   quoted(value));
  }

  int name_track(int track, const std::string& name) {
    if (!named_.insert(track).second) return track;
    meta("thread_name", track, name);
    fmt::format_to(into(), R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                   rank_.who.rank, track, track);
    return track;
  }

  void span(const Event& event, int track, const std::string& title) {
    fmt::format_to(into(),
                   R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"step":{},"value":{}}}}})",
                   quoted(title), rank_.who.rank, track, micros(event.begin), micros(event.end) - micros(event.begin),
                   event.step, std::isfinite(event.value) ? event.value : 0.0);
  }

  void mark(const Event& event, int track, const std::string& title) {
    fmt::format_to(into(), R"({{"ph":"i","s":"t","name":{},"pid":{},"tid":{},"ts":{:.3f},"args":{{"step":{}}}}})",
                   quoted(title), rank_.who.rank, track, micros(event.begin), event.step);
  }

  void put(const Event& event) {
    const std::string& name = run_.name_of(event);
    switch (event.kind) {
      case EventKind::forward:
      case EventKind::backward:
      case EventKind::optimizer:
      case EventKind::planning:
      case EventKind::recording: return span(event, kCompute, shoal::name(event.kind));
      case EventKind::produced: return mark(event, kCompute, name);
      case EventKind::exposed: return span(event, kWaits, event.peer < 0 ? name : fmt::format("rank {}", event.peer));
      case EventKind::exchange:
      case EventKind::collective: return in_lane(event, name);
      case EventKind::sent:
        return span(event, name_track(kWire + 2 * event.peer, fmt::format("to rank {}", event.peer)), "sent");
      case EventKind::received:
        return span(event, name_track(kWire + 2 * event.peer + 1, fmt::format("from rank {}", event.peer)), "received");
      case EventKind::metric:
        if (!std::isfinite(event.value)) return;
        fmt::format_to(into(), R"({{"ph":"C","name":{},"pid":{},"ts":{:.3f},"args":{{"value":{}}}}})", quoted(name),
                       rank_.who.rank, micros(event.begin), event.value);
        return;
      case EventKind::note: return mark(event, kCompute, name);
    }
  }

  // Programs run inside exchanges, so each kind has lanes of its own.
  void in_lane(const Event& event, const std::string& name) {
    const bool program = event.kind == EventKind::collective;
    const int lane = free_lane(program ? programs_ : exchanges_, event, kTraceLanes);
    if (lane < 0) return;
    const int track = kExchange + lane + (program ? kTraceLanes : 0);
    span(event, name_track(track, fmt::format("{} {}", program ? "program" : "exchange", lane + 1)), name);
  }

  const RunEvents& run_;
  const RankEvents& rank_;
  GzipFile& out_;
  std::string text_;
  std::set<int> named_;
  std::vector<Instant> exchanges_, programs_;
};

}  // namespace

int free_lane(std::vector<Instant>& busy_until, const Event& event, int most) {
  for (std::size_t lane = 0; lane < busy_until.size(); ++lane) {
    if (busy_until[lane] > event.begin) continue;
    busy_until[lane] = event.end;
    return static_cast<int>(lane);
  }
  if (static_cast<int>(busy_until.size()) == most) return -1;
  busy_until.push_back(event.end);
  return static_cast<int>(busy_until.size()) - 1;
}

void write_trace(const RunFolder& folder, const RunEvents& run) {
  write_aside(folder.path() / "trace.json.gz", [&](const std::filesystem::path& aside) {
    GzipFile out(aside);
    out.write(R"({"displayTimeUnit":"ms","traceEvents":[)"
              R"({"ph":"M","name":"clocks","pid":0,"args":{"name":)" +
              quoted(run.clocks) + "}}");
    for (const RankEvents& rank : run.ranks) MemberTrace(run, rank, out).write();
    out.write("\n]}\n");
    out.close();
  });
}

}  // namespace shoal::observe
