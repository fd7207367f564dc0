#include "shoal/observe/recorder.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "shoal/core/error.h"

namespace shoal::observe {
namespace {

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

}  // namespace

Author this_author(int rank, int size) {
  const auto unix_now = std::chrono::system_clock::now().time_since_epoch();
  const auto steady = steady_now().time_since_epoch();
  return {rank, size, host_name(), boot_id(), ::getpid(), (std::chrono::duration_cast<Nanoseconds>(unix_now) - steady).count()};
}

void WireSpans::add(const Event& event, std::vector<Event>& out) {
  if (event.kind != EventKind::sent && event.kind != EventKind::received) {
    out.push_back(event);
    return;
  }
  const auto [found, is_new] = open_.try_emplace({event.kind, event.peer}, event);
  if (is_new) return;
  Event& span = found->second;
  if (event.begin - span.end <= kLongestGap && event.end - span.begin <= kLongestSpan) {
    span.end = std::max(span.end, event.end);
    span.value += event.value;
    return;
  }
  out.push_back(span);
  span = event;
}

void WireSpans::close(std::vector<Event>& out) {
  for (const auto& [direction, span] : open_) out.push_back(span);
  open_.clear();
}

Recorder::Recorder(const RunFolder& folder, int rank, int size)
    : file_name_(folder.events_of(rank).string()), file_(file_name_, std::ios::binary | std::ios::trunc) {
  FileHeader header;
  header.authors.push_back(this_author(rank, size));
  file_ << to_line(header) << std::flush;
  if (!file_) throw Error(Code::io, std::string("cannot be written: ") + std::strerror(errno), file_name_);
  dropped_before_ = Events::local().dropped();
  Events::local().enable(true);
}

Recorder::~Recorder() {
  try {
    close();
  } catch (const Error&) {
    // Who wanted to know has called close().
  }
}

void Recorder::flush() {
  std::vector<Event> joined;
  for (const Event& event : Events::local().drain()) wire_.add(event, joined);
  write(joined);
}

void Recorder::close() {
  if (!open_) return;
  open_ = false;
  Events::local().enable(false);
  flush();
  std::vector<Event> rest;
  wire_.close(rest);
  write(rest);
  const std::uint64_t dropped = Events::local().dropped() - dropped_before_;
  if (dropped > 0) write_note(fmt::format("{} events came faster than they were written and are missing", dropped));
  if (left_out_ > 0) write_note(fmt::format("the last {} events are missing: a member keeps {}", left_out_, kMostEvents));
  file_.close();
}

void Recorder::write(const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events) {
    if (written_ == kMostEvents) {
      ++left_out_;
      continue;
    }
    append_line(text, event, Events::local().name_of(event.name));
    ++written_;
  }
  file_ << text << std::flush;
  if (!file_) throw Error(Code::io, std::string("cannot be written: ") + std::strerror(errno), file_name_);
}

void Recorder::write_note(const std::string& line) {
  const Instant now = steady_now();
  std::string text;
  append_line(text, {.kind = EventKind::note, .begin = now, .end = now}, line);
  file_ << text << std::flush;
}

}  // namespace shoal::observe
