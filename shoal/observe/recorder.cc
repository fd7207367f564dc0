#include "shoal/observe/recorder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "shoal/core/error.h"
#include "shoal/core/host.h"

namespace shoal::observe {

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

EventFile::Lock::Lock(const std::string& file) : fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) {
  if (fd_ < 0 || ::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;  // some file systems know no locks
  ::close(fd_);
  throw Error(Code::invalid_argument, "another job writes its events there", file, "give each job a folder (SHOAL_RUN_DIR) of its own");
}

EventFile::Lock::~Lock() {
  if (fd_ >= 0) ::close(fd_);
}

EventFile::EventFile(const RunFolder& folder, int rank, int size)
    : file_name_(folder.events_of(rank).string()), lock_(file_name_), file_(file_name_, std::ios::binary | std::ios::trunc) {
  FileHeader header;
  header.authors.push_back(this_author(rank, size));
  file_ << to_line(header) << std::flush;
  if (!file_) throw Error(Code::io, std::string("cannot be written: ") + std::strerror(errno), file_name_);
  dropped_before_ = Events::local().dropped();
}

void EventFile::take(const std::vector<Event>& events) {
  std::vector<Event> joined;
  for (const Event& event : events) wire_.add(event, joined);
  write(joined);
}

void EventFile::close() {
  std::vector<Event> rest;
  wire_.close(rest);
  write(rest);
  const std::uint64_t dropped = Events::local().dropped() - dropped_before_;
  if (dropped > 0) write_note(fmt::format("{} events came faster than they were written and are missing", dropped));
  if (left_out_ > 0) write_note(fmt::format("the last {} events are missing: a member keeps {}", left_out_, kMostEvents));
  file_.close();
}

void EventFile::write(const std::vector<Event>& events) {
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

void EventFile::write_note(const std::string& line) {
  const Instant now = steady_now();
  std::string text;
  append_line(text, {.kind = EventKind::note, .begin = now, .end = now}, line);
  file_ << text << std::flush;
}

Recorder::Recorder(std::vector<std::unique_ptr<EventSink>> sinks) : sinks_(std::move(sinks)) {
  Events::local().enable(true);
  const Instant now = steady_now();
  Events::local().record({.kind = EventKind::recording, .begin = now, .end = now});  // what follows up to the first step is start-up
}

Recorder::Recorder(const RunFolder& folder, int rank, int size) : Recorder([&] {
    std::vector<std::unique_ptr<EventSink>> file;
    file.push_back(std::make_unique<EventFile>(folder, rank, size));
    return file;
  }()) {}

Recorder::~Recorder() {
  try {
    close();
  } catch (const Error&) {
    // Who wanted to know has called close().
  }
}

void Recorder::flush() {
  const Instant began = steady_now();
  const std::vector<Event> events = Events::local().drain();
  for (const auto& sink : sinks_) sink->take(events);
  Events::local().record({.kind = EventKind::recording, .begin = began, .end = steady_now()});
}

void Recorder::close() {
  if (!open_) return;
  open_ = false;
  Events::local().enable(false);
  flush();
  for (const auto& sink : sinks_) sink->close();
}

}  // namespace shoal::observe
