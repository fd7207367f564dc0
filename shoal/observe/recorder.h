// Brings this process's events to where they are kept while the run goes on: its file of the run's folder, TensorBoard's files.
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

// Where a recorder brings events. Called by the recorder's caller.
class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;
  virtual void take(const std::vector<Event>& events) = 0;  // by begin; throws Error{io}
  virtual void close() {}                                   // nothing follows; throws Error{io}
};

// The member's file of the run's folder: events-`rank`.jsonl.
class EventFile : public EventSink {
 public:
  static constexpr std::uint64_t kMostEvents = 1'000'000;

  EventFile(const RunFolder& folder, int rank, int size);  // throws Error{io}; invalid_argument while another job has it open
  void take(const std::vector<Event>& events) override;
  void close() override;

 private:
  void write(const std::vector<Event>& events);
  void write_note(const std::string& line);

  // One job a folder: held while the file is written.
  class Lock {
   public:
    explicit Lock(const std::string& file);
    ~Lock();
    Lock(const Lock&) = delete;

   private:
    int fd_;
  };

  std::string file_name_;
  Lock lock_;
  std::ofstream file_;
  WireSpans wire_;
  std::uint64_t written_ = 0, left_out_ = 0, dropped_before_ = 0;
};

class Recorder {
 public:
  // Switches recording on.
  explicit Recorder(std::vector<std::unique_ptr<EventSink>> sinks);
  Recorder(const RunFolder& folder, int rank, int size);  // into its EventFile alone
  // Closes; a failure then has nobody to hear it.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Brings on what happened since the last time. Call it every second or so: a thread's buffer is bounded. Throws Error{io}.
  void flush();
  // The last flush; switches recording off. A second call does nothing. Throws Error{io}.
  void close();

 private:
  std::vector<std::unique_ptr<EventSink>> sinks_;
  bool open_ = true;
};

// This process, its host and its clocks, as of now.
Author this_author(int rank, int size);

}  // namespace shoal::observe
