// One stream of what happened, when, where and why. Metrics, traces, reports and the board all read it;
// nobody measures a second time.
//
// record() costs about 100 ns: it appends to a bounded buffer of the calling thread. A buffer that is full
// between two drains drops the newest and counts them (`Events::dropped`). Threads: record() from any
// thread; drain() from one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/core/time.h"

namespace shoal {

// A span has begin < end, a mark begin == end. `value` is bytes for wire spans, else as listed.
enum class EventKind : std::uint8_t {
  forward,    // model forward, whole                        (track: compute)
  backward,   // model backward, whole                       (track: compute)
  optimizer,  // the update itself, without waiting           (track: compute)
  produced,   // autograd produced a gradient: mark           (track: compute; name: tensor; value: bytes)
  exchange,   // a tensor from produced to reduced            (track: exchange; name: tensor; value: bytes sent; step)
  exposed,    // the caller waited for a gate                  (track: compute; name: tensor; peer: waited for)
  sent,       // a frame left for `peer`                       (track: wire; value: bytes)
  received,   // a frame came from `peer`                      (track: wire; value: bytes)
  collective, // one run of a program                          (track: exchange; name: program)
  metric,     // name = value at this time: mark (loss, images/s)
  note,       // something worth a line in the report: mark; name: the line
  planning,   // links were measured and the plan made (value 1) or fitted to them  (track: compute)
  recording,  // the recorder wrote events, in the caller's time  (track: compute)
};
const char* name(EventKind kind);

struct Event {
  EventKind kind;
  Instant begin, end;
  std::int64_t step = -1;   // iteration; -1 outside of one
  std::int32_t peer = -1;   // rank; -1 where none
  double value = 0;
  std::uint32_t name = 0;   // Events::intern()
};

class Events {
 public:
  static Events& local();                        // this process's stream
  std::uint32_t intern(std::string_view name);   // stable small number for a name; any thread
  std::string name_of(std::uint32_t id) const;

  void enable(bool on);                          // off at start: record() is then one relaxed load
  bool enabled() const;
  void record(const Event& event);
  std::vector<Event> drain();                    // everything recorded since the last drain, by begin
  std::uint64_t dropped() const;

 private:
  Events();
  ~Events();
  struct Impl;
  Impl* impl_;
};

}  // namespace shoal
