#include "shoal/net/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <cerrno>
#include <cstring>

#include "shoal/core/packed_words.h"

namespace shoal::net {
namespace {

constexpr std::size_t kBatchFrames = 16;
constexpr std::size_t kSocketTurn = 1024 * 1024;       // bytes read or written before other connections get a turn
constexpr std::size_t kDirect = 16 * 1024;       // rest of a payload that is worth a read of its own
constexpr std::size_t kPieces = 8;

// Asio's numbers are the system's, but its category is not equal to any condition of the standard's (std::errc).
std::error_code as_errno(const std::error_code& error) {
  return error == asio::error::eof ? std::error_code() : std::error_code(error.value(), std::system_category());
}

// As many of the bytes as the pieces take, or are there.
std::size_t lay(std::span<const std::byte> bytes, std::span<const iovec> pieces) {
  std::size_t laid = 0;
  for (const iovec& piece : pieces) {
    const std::size_t size = std::min(piece.iov_len, bytes.size() - laid);
    std::memcpy(piece.iov_base, bytes.data() + laid, size);
    laid += size;
  }
  return laid;
}

std::error_code last_error() { return {errno, std::system_category()}; }

}  // namespace

OutFrame owned_frame(const wire::Header& header, std::string_view payload) {
  OutFrame frame;
  frame.header = wire::encode(header);
  if (!payload.empty()) {
    frame.own = std::make_unique<std::byte[]>(payload.size());
    std::memcpy(frame.own.get(), payload.data(), payload.size());
    frame.payload = {frame.own.get(), payload.size()};
  }
  return frame;
}

Connection::Connection(Socket socket, wire::Channel channel, ConnectionUser& user)
    : socket_(std::move(socket)), guard_(socket_.native_handle()), channel_(channel), user_(user) {}

void Connection::start() { arm_read(); }

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  guard_ = ForkGuard();
  net::let_go(socket_);
  std::error_code ignored;
  socket_.close(ignored);
}

std::size_t Connection::unacknowledged() { return closed_ ? 0 : net::unacknowledged(socket_); }

std::size_t Connection::unsent() { return closed_ ? 0 : net::unsent(socket_); }

std::uint32_t Connection::stalled_heartbeats() {
  const std::uint64_t waiting = unacknowledged(), acknowledged = handed_over_ - waiting;
  stalled_ = waiting > 0 && acknowledged == acknowledged_ ? stalled_ + 1 : 0;
  acknowledged_ = acknowledged;
  return stalled_;
}

void Connection::end(std::error_code why) {
  if (closed_) return;
  close();
  user_.ended(channel_, why ? why : write_error_);
}

void Connection::arm_write() {
  write_armed_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const std::error_code& error) {
    self->write_armed_ = false;
    if (!error) self->pump();
  });
}

void Connection::pump() {
  std::size_t turn = 0;
  while (!closed_ && !write_armed_ && !write_error_) {
    std::size_t gathered = 0;
    for (const OutFrame& frame : batch_) gathered += wire::kHeaderBytes + frame.payload.size();
    while (batch_.size() < kBatchFrames && gathered < batch_bytes_) {
      OutFrame frame;
      if (!user_.next_frame(channel_, frame)) break;
      gathered += wire::kHeaderBytes + frame.payload.size();
      batch_.push_back(std::move(frame));
    }
    if (batch_.empty()) return;
    if (turn >= kSocketTurn) return arm_write();

    std::array<iovec, 2 * kBatchFrames> pieces;
    std::size_t count = 0, skip = written_;
    const auto add = [&](const std::byte* data, std::size_t size) {
      const std::size_t left_out = std::min(skip, size);
      skip -= left_out;
      if (size > left_out) pieces[count++] = {const_cast<std::byte*>(data) + left_out, size - left_out};
    };
    for (const OutFrame& frame : batch_) {
      add(frame.header.data(), frame.header.size());
      add(frame.payload.data(), frame.payload.size());
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t n = sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      found_full_ = true;
      return arm_write();
    }
    if (n < 0) {  // the reader ends it: what the peer said last, and why, may still lie unread
      write_error_ = last_error();
      return;
    }
    const std::size_t whole = gathered - written_;
    turn += static_cast<std::size_t>(n);
    const bool full = static_cast<std::size_t>(n) < whole;
    found_full_ |= full;
    user_.wire_bytes(static_cast<std::size_t>(n), 0);
    handed_over_ += static_cast<std::size_t>(n);
    drop_written(static_cast<std::size_t>(n));
    if (full && !closed_) return arm_write();
  }
}

void Connection::drop_written(std::size_t bytes) {
  written_ += bytes;
  while (!batch_.empty()) {
    const std::size_t size = wire::kHeaderBytes + batch_.front().payload.size();
    if (written_ < size) return;
    written_ -= size;
    OutFrame frame = std::move(batch_.front());
    batch_.pop_front();
    user_.frame_written(channel_, frame);
  }
}

// Short frames are read by Asio itself into the stash: its waits cost a call of epoll_ctl each, its reads do not. Into
// receives nothing is read behind the back of their owner, who may take the memory back.
void Connection::arm_read() {
  if (remaining_ >= kDirect) {
    socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const std::error_code& error) {
      if (!error && !self->closed_) self->on_readable();
    });
    return;
  }
  const std::size_t room = stash_.size() - stash_end_;
  socket_.async_receive(asio::buffer(stash_.data() + stash_end_, room),
                        [self = shared_from_this(), room](const std::error_code& error, std::size_t got) {
                          if (self->closed_) return;
                          if (error) return self->end(as_errno(error));
                          self->user_.wire_bytes(0, got);
                          self->stash_end_ += got;
                          self->found_empty_ |= got < room;
                          if (!self->parse()) return;
                          got == room ? self->on_readable() : self->arm_read();
                        });
}

void Connection::on_readable() {
  std::size_t bytes = 0;
  while (bytes < kSocketTurn) {
    if (!read_once(bytes)) {
      if (!closed_) arm_read();
      return;
    }
  }
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (!self->closed_) self->on_readable();
  });
}

bool Connection::read_once(std::size_t& bytes) {
  std::array<iovec, kPieces + 1> pieces;
  std::size_t count = 0, direct = 0;
  if (remaining_ > 0) {  // the stash is empty then: parse() has moved its bytes where they belong
    count = plan(std::span(pieces).first(kPieces));
    for (std::size_t i = 0; i < count; ++i) direct += pieces[i].iov_len;
  }
  // Behind a long payload take only the next header, so that the payload after it is read into its place.
  const std::size_t room = direct == remaining_ ? (direct >= kDirect ? wire::kHeaderBytes : stash_.size() - stash_end_) : 0;
  if (room > 0) pieces[count++] = {stash_.data() + stash_end_, room};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  const ssize_t n = recvmsg(socket_.native_handle(), &message, MSG_DONTWAIT);
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    found_empty_ = true;
    return false;
  }
  if (n <= 0) {
    end(n == 0 ? std::error_code() : last_error());
    return false;
  }
  const auto got = static_cast<std::size_t>(n);
  bytes += got;
  found_empty_ |= got < direct + room;
  user_.wire_bytes(0, got);
  const std::size_t placed = std::min(got, direct);
  if (placed > 0 && !took(placed)) return false;
  stash_end_ += got - placed;
  if (!parse()) return false;
  return !closed_ && got == direct + room;
}

bool Connection::parse() {
  for (;;) {
    if (remaining_ > 0 && !consume_payload()) break;
    const std::size_t have = stash_end_ - stash_begin_;
    if (have < wire::kHeaderBytes) break;
    const std::byte* at = stash_.data() + stash_begin_;
    const auto header = wire::decode(std::span<const std::byte, wire::kHeaderBytes>(at, wire::kHeaderBytes), channel_);
    if (!header) {
      end(std::make_error_code(std::errc::protocol_error));
      return false;
    }
    if (header->kind == wire::Kind::data) {
      stash_begin_ += wire::kHeaderBytes;
      unpacked_ = header->packed > 0 ? header->length : 0;
      remaining_ = header->wire_bytes();
      packed_.resize(header->packed);
      if (!user_.data_begins(channel_, *header) || closed_) return false;
      continue;
    }
    if (have < wire::kHeaderBytes + header->length) break;
    stash_begin_ += wire::kHeaderBytes + header->length;
    if (!user_.message(channel_, *header, {at + wire::kHeaderBytes, header->length}) || closed_) return false;
  }
  std::memmove(stash_.data(), stash_.data() + stash_begin_, stash_end_ - stash_begin_);
  stash_end_ -= stash_begin_;
  stash_begin_ = 0;
  return true;
}

// Moves payload from the stash to its place; true if the frame is complete.
bool Connection::consume_payload() {
  while (remaining_ > 0 && stash_begin_ < stash_end_) {
    std::array<iovec, kPieces> pieces;
    const std::size_t count = plan(pieces);
    const std::size_t moved = lay(std::span(stash_).subspan(stash_begin_, stash_end_ - stash_begin_), std::span(pieces).first(count));
    stash_begin_ += moved;
    if (!took(moved)) return false;
  }
  return remaining_ == 0;
}

// Where the next bytes of the payload go.
std::size_t Connection::plan(std::span<iovec> into) {
  if (unpacked_ == 0) return user_.plan(channel_, into);
  into[0] = {packed_.data() + packed_.size() - remaining_, remaining_};
  return 1;
}

bool Connection::took(std::size_t bytes) {
  remaining_ -= bytes;
  if (unpacked_ == 0) {
    user_.took(channel_, bytes);
    return !closed_;
  }
  return remaining_ > 0 || unpack();
}

bool Connection::unpack() {
  std::array<iovec, kPieces> pieces;
  const std::size_t count = user_.plan(channel_, pieces);
  const bool fits = count > 0 && pieces[0].iov_len == unpacked_;
  if (!fits) room_.resize(unpacked_);
  const std::span into(fits ? static_cast<std::byte*>(pieces[0].iov_base) : room_.data(), unpacked_);
  if (!unpack_words(packed_, into)) {
    end(std::make_error_code(std::errc::protocol_error));
    return false;
  }
  unpacked_ = 0;
  if (!fits) return place(into);
  user_.took(channel_, into.size());
  return !closed_;
}

bool Connection::place(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::array<iovec, kPieces> pieces;
    const std::size_t count = user_.plan(channel_, pieces);
    const std::size_t placed = lay(bytes, std::span(pieces).first(count));
    bytes = bytes.subspan(placed);
    user_.took(channel_, placed);
    if (closed_) return false;
  }
  return true;
}

}  // namespace shoal::net
