// The connection with a member of this host through memory that both map (segment.h): frames as on a TCP connection, in a
// ring of bytes a direction. Urgent frames go before others, and what lies in the ring before one is copied in some
// microseconds. Who is alive is for the control connection to say.
//
// A member that finds nothing to read and nothing to do says so in its segment before it sleeps; whoever then writes, or makes
// room that is waited for, rings its bell.
//
// Lifetime: its user's. Everything on the loop.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "shoal/net/connection.h"
#include "shoal/net/loop.h"
#include "shoal/net/ring.h"
#include "shoal/net/segment.h"

namespace shoal::net {

class MemoryConnection {
 public:
  MemoryConnection(OwnSegment own, OtherSegment other, ConnectionUser& user);

  void pump();                  // writes what the user offers, as far as there is room
  bool look();                  // reads what has come, writes if there is room again; false: nothing to do
  void asleep(bool asleep) { (*own_).asleep.store(asleep ? 1 : 0); }
  bool writing() const { return held_.has_value(); }
  // As Connection: the frame that waits for room.
  template <typename Take>
  void detach(std::uint64_t operation, Take take) {
    if (held_ && held_->data && held_->tag.operation == operation) release(*held_, take);
  }
  template <typename Take>
  void detach_all(Take take) {
    if (held_ && held_->data) release(*held_, take);
  }

 private:
  bool write_held();            // false: no room for all of it
  bool read_some(std::size_t& bytes);
  bool begin_frame();
  bool end(std::error_code why);

  OwnSegment own_;
  OtherSegment other_;
  ConnectionUser& user_;
  RingWriter out_;
  RingReader in_;
  bool ended_ = false;

  std::optional<OutFrame> held_;  // being written
  std::size_t written_ = 0;       // of its header and payload

  wire::HeaderBytes header_{};
  std::size_t header_bytes_ = 0;  // of header_ that have come
  std::size_t remaining_ = 0;     // of a data frame's payload
  wire::Header message_header_;
  std::vector<std::byte> message_;  // of any other frame: its payload
  std::size_t message_bytes_ = 0;
};

// The memory connections of a transport, as the loop looks at them.
class MemoryConnections final : public Watched {
 public:
  explicit MemoryConnections(Loop& loop) : loop_(loop) {}
  ~MemoryConnections() override { loop_.unwatch(*this); }
  void add(MemoryConnection& connection);
  void remove(MemoryConnection& connection) { std::erase(all_, &connection); }

 private:
  bool look() override;
  void asleep(bool asleep) override;

  Loop& loop_;
  std::vector<MemoryConnection*> all_;
};

}  // namespace shoal::net
