#include "shoal/core/event.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace shoal {
namespace {

// Room for half a second of frames at 25 Gbit/s in 64 KB slices, 1.5 MB a thread.
constexpr std::size_t kBufferEvents = 32768;
static_assert((kBufferEvents & (kBufferEvents - 1)) == 0, "the ring's index is a mask");
// Names are tensors, programs, metrics and notes; a caller that invents them without end shares one.
constexpr std::size_t kMostNames = 65536;
constexpr std::size_t kLongestName = 1024;

// A ring with one writer, its thread, and one reader, whoever drains. Written and read indices only grow:
// (1) the writer fills slot `written` before it publishes written + 1; (2) the reader is done with a slot
// before it publishes read + 1; (3) read <= written <= read + kBufferEvents.
struct Buffer {
  std::atomic<std::uint64_t> written{0}, read{0};
  std::atomic<std::uint64_t> dropped{0};
  std::unique_ptr<Event[]> slots{new Event[kBufferEvents]};

  void put(const Event& event) {
    const std::uint64_t at = written.load(std::memory_order_relaxed);
    if (at - read.load(std::memory_order_acquire) == kBufferEvents) {
      dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    slots[at & (kBufferEvents - 1)] = event;
    written.store(at + 1, std::memory_order_release);
  }

  void take_all(std::vector<Event>& into) {
    const std::uint64_t end = written.load(std::memory_order_acquire);
    std::uint64_t at = read.load(std::memory_order_relaxed);
    for (; at != end; ++at) into.push_back(slots[at & (kBufferEvents - 1)]);
    read.store(end, std::memory_order_release);
  }
};

}  // namespace

const char* name(EventKind kind) {
  switch (kind) {
    case EventKind::forward:
      return "forward";
    case EventKind::backward:
      return "backward";
    case EventKind::optimizer:
      return "optimizer";
    case EventKind::produced:
      return "produced";
    case EventKind::exchange:
      return "exchange";
    case EventKind::exposed:
      return "exposed";
    case EventKind::sent:
      return "sent";
    case EventKind::received:
      return "received";
    case EventKind::collective:
      return "collective";
    case EventKind::metric:
      return "metric";
    case EventKind::note:
      return "note";
    case EventKind::planning:
      return "planning";
    case EventKind::recording:
      return "recording";
  }
  return "unknown";
}

struct Events::Impl {
  std::atomic<bool> enabled{false};

  std::mutex buffers_mutex;                      // guards the two lists (not what is in a buffer)
  std::vector<std::unique_ptr<Buffer>> buffers;  // all, for drain()
  std::vector<Buffer*> without_thread;           // whose thread has ended: the next thread takes one over

  std::mutex names_mutex;             // guards the two below
  std::deque<std::string> names{""};  // by id; a deque, so that the keys below stay where they are
  std::unordered_map<std::string_view, std::uint32_t> ids{{names.front(), 0}};

  Buffer* adopt() {
    const std::lock_guard lock(buffers_mutex);
    if (!without_thread.empty()) {
      Buffer* buffer = without_thread.back();
      without_thread.pop_back();
      return buffer;
    }
    buffers.push_back(std::make_unique<Buffer>());
    return buffers.back().get();
  }

  void leave(Buffer* buffer) {
    const std::lock_guard lock(buffers_mutex);
    without_thread.push_back(buffer);
  }
};

Events::Events() : impl_(new Impl) {}
Events::~Events() { delete impl_; }

Events& Events::local() {
  static Events* const events = new Events;  // never destroyed: threads may record until the process ends
  return *events;
}

std::uint32_t Events::intern(std::string_view text) {
  text = text.substr(0, kLongestName);
  const std::lock_guard lock(impl_->names_mutex);
  if (const auto found = impl_->ids.find(text); found != impl_->ids.end()) return found->second;
  const auto id = static_cast<std::uint32_t>(impl_->names.size());
  if (id == kMostNames) return id - 1;
  impl_->names.emplace_back(id == kMostNames - 1 ? std::string_view("(more names)") : text);
  impl_->ids.emplace(impl_->names.back(), id);
  return id;
}

std::string Events::name_of(std::uint32_t id) const {
  const std::lock_guard lock(impl_->names_mutex);
  return id < impl_->names.size() ? impl_->names[id] : std::string();
}

void Events::enable(bool on) { impl_->enabled.store(on, std::memory_order_relaxed); }
bool Events::enabled() const { return impl_->enabled.load(std::memory_order_relaxed); }

void Events::record(const Event& event) {
  if (!enabled()) return;
  // The thread's buffer outlives the thread: what it recorded last is still drained.
  struct Adopted {
    Impl* impl;
    Buffer* buffer;
    explicit Adopted(Impl* from) : impl(from), buffer(from->adopt()) {}
    ~Adopted() { impl->leave(buffer); }
  };
  thread_local Adopted adopted(impl_);
  adopted.buffer->put(event);
}

std::vector<Event> Events::drain() {
  std::vector<Event> events;
  {
    const std::lock_guard lock(impl_->buffers_mutex);
    for (const auto& buffer : impl_->buffers) buffer->take_all(events);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.begin < b.begin; });
  return events;
}

std::uint64_t Events::dropped() const {
  const std::lock_guard lock(impl_->buffers_mutex);
  std::uint64_t count = 0;
  for (const auto& buffer : impl_->buffers) count += buffer->dropped.load(std::memory_order_relaxed);
  return count;
}

}  // namespace shoal
