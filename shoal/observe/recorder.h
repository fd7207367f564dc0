// Brings this process's events into its file of the run's folder while the run goes on.
//
// Memory and file stay bounded: frames of one peer and direction that follow each other become one span of up to
// kLongestWireSpan, and after kMostEvents a member's file ends with a note that says so. One recorder a process, since it
// drains Events::local(). Threads: one caller at a time (events come from any thread).
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shoal/core/event.h"
#include "shoal/observe/event_line.h"
#include "shoal/observe/run_folder.h"

namespace shoal::observe {

// Joins frames into spans. Pure: in, events by begin; out, the same with fewer of kind sent and received.
class WireSpans {
 public:
  static constexpr Nanoseconds kLongestSpan = std::chrono::milliseconds(20);
  static constexpr Nanoseconds kLongestGap = std::chrono::milliseconds(2);

  // Appends to `out` what is complete. A span stays open until a frame no longer fits.
  void add(const Event& event, std::vector<Event>& out);
  void close(std::vector<Event>& out);

 private:
  std::map<std::pair<EventKind, std::int32_t>, Event> open_;  // by direction and peer
};

class Recorder {
 public:
  static constexpr std::uint64_t kMostEvents = 1'000'000;

  // Starts the file events-`rank`.jsonl and switches recording on. Throws Error{io}.
  Recorder(const RunFolder& folder, int rank, int size);
  // Closes; a failure then has nobody to hear it.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Writes what happened since the last time. Call it every second or so: a thread's buffer is bounded. Throws Error{io}.
  void flush();
  // The last flush; switches recording off. A second call does nothing. Throws Error{io}.
  void close();

 private:
  void write(const std::vector<Event>& events);
  void write_note(const std::string& line);

  std::string file_name_;
  std::ofstream file_;
  WireSpans wire_;
  std::uint64_t written_ = 0, left_out_ = 0, dropped_before_ = 0;
  bool open_ = true;
};

// This process, its host and its clocks, as of now.
Author this_author(int rank, int size);

}  // namespace shoal::observe
