// The connection with a member of this host through memory that both map (segment.h): frames as on a TCP connection, in a
// ring of bytes a direction. Urgent frames go before others, and what lies in the ring before one is copied in some
// microseconds. Who is alive is for the control connection to say.
//
// A large frame whose payload lies in the sender's arena (arena.h) is lent: its place goes into the ring, the other copies from there, and the
// frame counts as written when the ring says so, and so does every data frame behind it: a send may be cut into frames of both kinds, and who sent it
// has its memory again when all of them have been read. Where an operation ends before (detach), what its handlers hold is kept until then, and what
// they only point to may change while it is read: that is for operations that end on both sides. A connection that ends before says so in its segment, and
// what was not read by then is not taken. What was given (loans.h) stays there, and counts as written as soon as the other knows of it.
//
// A member that finds nothing to read and nothing to do says so in its segment before it sleeps; whoever then writes, or makes
// room that is waited for, rings its bell.
//
// Lifetime: its user's. Everything on the loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "shoal/net/connection.h"
#include "shoal/net/loans.h"
#include "shoal/net/loop.h"
#include "shoal/net/ring.h"
#include "shoal/net/segment.h"

namespace shoal::net {

class MemoryConnection {
 public:
  MemoryConnection(OwnSegment own, OtherSegment other, ConnectionUser& user, Post post);
  ~MemoryConnection();
  MemoryConnection(const MemoryConnection&) = delete;
  void lend_from(const Arena& arena) { arena_ = &arena; }  // which the other maps; it outlives the connection

  bool lends(std::span<const std::byte> bytes) const { return arena_ && arena_->offset_of(bytes); }

  void pump();                  // writes what the user offers, as far as there is room
  bool look();                  // reads what has come, writes if there is room again; false: nothing to do
  void forget() { given_.forget(); }  // the other is lost
  void asleep(bool asleep) { (*own_).asleep.store(asleep ? 1 : 0); }
  bool writing() const { return held_.has_value() || !unread_.empty(); }
  // As Connection: of the frame that waits for room, and of those that the other has not read.
  template <typename Take>
  void detach(std::uint64_t operation, Take take) {
    detach_if([operation](const OutFrame& frame) { return frame.tag.operation == operation; }, take);
  }
  template <typename Take>
  void detach_all(Take take) {
    detach_if([](const OutFrame&) { return true; }, take);
  }

 private:
  struct Unread {
    std::uint64_t until = 0;    // position in the ring behind it
    OutFrame frame;
  };
  template <typename Which, typename Take>
  void detach_if(const Which& which, Take take) {
    if (held_ && held_->data && which(*held_)) {
      if (held_->lent) {
        let_go(*held_, take);
      } else {
        release(*held_, take);
      }
    }
    for (Unread& unread : unread_) {
      if (which(unread.frame)) let_go(unread.frame, take);
    }
  }
  // Of a frame that is read where it lies, or whose send has such: what its handler holds stays until it has been read.
  template <typename Take>
  static void let_go(OutFrame& frame, Take take) {
    if (!frame.done) return;
    take(Done(frame.done));
    frame.spent = std::exchange(frame.done, nullptr);
  }
  bool next(OutFrame& frame);
  void hold(OutFrame frame);
  bool write_held();            // false: no room for all of it
  bool take_back();             // what has been read; false: nothing
  bool read_some(std::size_t& bytes);
  std::size_t read_payload(std::size_t& wanted);
  bool begin_payload();
  bool begin_frame();
  bool end_message();
  bool end(std::error_code why);

  OwnSegment own_;
  OtherSegment other_;
  ConnectionUser& user_;
  RingWriter out_;
  RingReader in_;
  bool ended_ = false;

  const std::shared_ptr<Borrowed> borrowing_;
  Given given_;
  const Arena* arena_ = nullptr;
  std::optional<OutFrame> held_;  // being written
  std::array<std::byte, wire::kPlaceBytes + wire::kMarkBytes> held_place_{};  // if it is lent
  std::size_t written_ = 0;       // of its header and payload, or place and mark
  std::deque<Unread> unread_;     // lent frames and the data frames behind them, in the order of the ring

  wire::HeaderBytes header_{};
  std::size_t header_bytes_ = 0;  // of header_ that have come
  std::size_t remaining_ = 0;     // of a data frame's payload
  bool borrowed_ = false;         // it is lent
  Loan loan_;                     // it was given, and is to be copied all the same
  std::array<std::byte, wire::kPlaceBytes> place_{};
  std::size_t place_bytes_ = 0, mark_bytes_ = 0;  // of its place and its mark that have come
  const std::byte* source_ = nullptr;             // what is left of it
  wire::Header header_read_;
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
