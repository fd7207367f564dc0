// One TCP connection after its handshake: writes the frames its user offers, reads frames into where its user wants
// them. Header and payload leave in one sendmsg, from the caller's memory where they are not packed; payload arrives by readv in the
// memory of the receive that waits for it, or first into memory of this, where it is packed. Everything on the loop.
//
// Lifetime: held by its user and by its own pending waits. After close() the user is never called again.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/net/body.h"
#include "shoal/net/frame.h"
#include "shoal/net/sockets.h"

namespace shoal::net {

struct OutFrame {
  wire::HeaderBytes header{};
  std::span<const std::byte> payload;  // the caller's memory, or `own`
  std::unique_ptr<std::byte[]> own;
  std::size_t unpacked = 0;            // bytes of the stream that the payload stands for, if it is packed
  Tag tag;
  bool data = false;
  bool lent = false;                   // the peer reads it where it lies
  bool follows = false;                // as its header says
  Bytes given;                         // that the payload lies in, where the peer may keep it (Transport::give)
  Done done;                           // runs when the last byte is with the kernel, or has been read where it lay; may be empty
  Done spent;                          // has run before that, and holds what is still to be read (memory_connection.h)

  std::size_t stream_bytes() const { return unpacked > 0 ? unpacked : payload.size(); }
};
// A frame that owns its payload.
OutFrame owned_frame(const wire::Header& header, std::string_view payload);
// A data frame that waits gets a copy of its payload; its handler is taken out.
template <typename Take>
void release(OutFrame& frame, Take take) {
  if (!frame.own) {
    frame.own = std::make_unique<std::byte[]>(frame.payload.size());
    std::copy(frame.payload.begin(), frame.payload.end(), frame.own.get());
    frame.payload = {frame.own.get(), frame.payload.size()};
  }
  if (frame.done) take(std::move(frame.done));
  frame.done = nullptr;
}

class ConnectionUser {
 public:
  // The next frame to write; false: nothing now (the user will pump() when there is).
  virtual bool next_frame(wire::Channel channel, OutFrame& frame) = 0;
  virtual void frame_written(wire::Channel channel, OutFrame& frame) = 0;
  // A data frame starts. Its payload goes where plan() says, piece by piece; took() tells how much went there.
  // false: the frame breaks the rules; the user has said why and the connection is dead.
  virtual bool data_begins(wire::Channel channel, const wire::Header& header) = 0;
  virtual std::size_t plan(wire::Channel channel, std::span<iovec> into) = 0;
  virtual void took(wire::Channel channel, std::size_t bytes) = 0;
  // Through memory, in place of plan(): all of the payload stays where it lies, for as long as who takes it holds it. false: it is to be copied.
  virtual bool keep(std::span<const std::byte> payload, Loan loan) = 0;
  // Any other frame, whole. false: as above.
  virtual bool message(wire::Channel channel, const wire::Header& header, std::span<const std::byte> payload) = 0;
  virtual void wire_bytes(std::size_t sent, std::size_t received) = 0;
  // The peer closed (no error), or the connection broke, or what came is no frame (protocol_error).
  virtual void ended(wire::Channel channel, std::error_code why) = 0;

 protected:
  ~ConnectionUser() = default;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, wire::Channel channel, ConnectionUser& user);

  void start();                 // begins to read
  void pump();                  // writes what the user offers, as far as the kernel takes it
  void close();
  void let_go() {               // of a member that is lost
    if (!closed_) net::let_go(socket_);
  }
  bool closed() const { return closed_; }
  bool writing() const { return !batch_.empty(); }
  // Whether the kernel's buffer was found full, or empty, since this was asked last: whether bytes went, or came, as the network took or brought them.
  bool found_full() { return std::exchange(found_full_, false); }
  bool found_empty() { return std::exchange(found_empty_, false); }
  std::size_t unacknowledged();
  std::size_t unsent();         // with the kernel, and not yet on the network
  // For how many heartbeats in a row nothing of what the peer's kernel does not have has come there. Asked once in each.
  std::uint32_t stalled_heartbeats();
  void batch_bytes(std::size_t bytes) { batch_bytes_ = bytes; }  // frames to gather for one system call
  // Frames of this operation that wait for the kernel get a copy of their payload; their handlers are taken out.
  template <typename Take>
  void detach(std::uint64_t operation, Take take);
  template <typename Take>
  void detach_all(Take take);
  Socket& socket() { return socket_; }

 private:
  void arm_read();
  void on_readable();
  bool read_once(std::size_t& bytes);  // false: nothing more now, or ended
  bool parse();                        // false: ended
  bool consume_payload();
  std::size_t plan(std::span<iovec> into);
  bool took(std::size_t bytes);        // false: ended
  bool unpack();                       // likewise
  bool place(std::span<const std::byte> bytes);  // likewise
  void arm_write();
  void drop_written(std::size_t bytes);
  void end(std::error_code why);

  Socket socket_;
  ForkGuard guard_;
  const wire::Channel channel_;
  ConnectionUser& user_;        // closes this connection before it dies
  bool closed_ = false, write_armed_ = false;
  bool found_full_ = false, found_empty_ = false;
  std::error_code write_error_; // of the write that failed: nothing more is written

  std::deque<OutFrame> batch_;
  std::size_t written_ = 0;     // bytes of batch_.front() (header and payload) with the kernel
  std::size_t batch_bytes_ = 64 * 1024;
  std::uint64_t handed_over_ = 0, acknowledged_ = 0;  // bytes that the kernel has had; that the peer's had at the last heartbeat
  std::uint32_t stalled_ = 0;

  std::size_t remaining_ = 0;   // payload bytes of the data frame that is being read
  std::size_t unpacked_ = 0;    // its length, if it is packed
  std::vector<std::byte> packed_, room_;  // where it comes, and where it is unpacked if that is not one place
  std::array<std::byte, 16 * 1024> stash_;  // headers, short frames, what came behind a payload
  std::size_t stash_begin_ = 0, stash_end_ = 0;
};

template <typename Take>
void Connection::detach(std::uint64_t operation, Take take) {
  for (OutFrame& frame : batch_) {
    if (frame.data && frame.tag.operation == operation) release(frame, take);
  }
}

template <typename Take>
void Connection::detach_all(Take take) {
  for (OutFrame& frame : batch_) {
    if (frame.data) detach(frame.tag.operation, take);
  }
}

}  // namespace shoal::net
