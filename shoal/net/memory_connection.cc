#include "shoal/net/memory_connection.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace shoal::net {
namespace {

constexpr std::size_t kMemoryTurn = 256 * 1024;  // bytes read before others get a turn
constexpr std::size_t kAtOnce = 8;
constexpr std::size_t kLeastLent = 4096;   // bytes; smaller ones are copied sooner than taken back

}  // namespace

MemoryConnection::MemoryConnection(OwnSegment own, OtherSegment other, ConnectionUser& user, Post post)
    : own_(std::move(own)),
      other_(std::move(other)),
      user_(user),
      out_((*own_).ring, (*own_).written, (*own_).read),
      in_(other_.shared->ring, other_.shared->written, other_.shared->read),
      borrowing_(std::make_shared<Borrowed>(std::move(other_.arena), std::move(post), [this] { pump(); })) {}

MemoryConnection::~MemoryConnection() {
  borrowing_->end();
  if (unread_.empty() && !(held_ && held_->lent)) return;
  (*own_).withdrawn.store(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before anybody writes there
}

void MemoryConnection::pump() {
  bool wrote = false;
  while (!ended_) {
    if (!held_) {
      OutFrame frame;
      if (!next(frame)) break;
      hold(std::move(frame));
    }
    const std::size_t before = written_;
    const bool whole = write_held();
    wrote = wrote || written_ > before;
    if (!whole) break;
    OutFrame frame = std::move(*held_);
    held_.reset();
    if (frame.lent || (frame.data && !unread_.empty())) {
      unread_.push_back({out_.position(), std::move(frame)});
    } else {
      user_.frame_written(wire::Channel::memory, frame);
    }
  }
  if (wrote) other_.wake();
  if (!unread_.empty()) take_back();
}

bool MemoryConnection::next(OutFrame& frame) {
  const auto returned = borrowing_->take_returned();
  if (returned.empty()) return user_.next_frame(wire::Channel::memory, frame);
  const std::string payload = wire::encode(returned);
  frame = owned_frame({.kind = wire::Kind::returned, .length = static_cast<std::uint32_t>(payload.size()), .tag = {}}, payload);
  return true;
}

void MemoryConnection::hold(OutFrame frame) {
  written_ = 0;
  const bool worth_it = frame.payload.size() >= kLeastLent || !frame.given.empty();  // the end of what was given, too: it is taken in one piece
  const auto place = arena_ && frame.data && worth_it ? arena_->offset_of(frame.payload) : std::nullopt;
  if (place) {
    frame.lent = true;
    auto header = *wire::decode(frame.header, wire::Channel::memory);
    header.lent = true;
    header.given = !frame.given.empty();
    if (header.given) given_.push(std::move(frame.given));
    frame.header = wire::encode(header);
    std::memcpy(held_place_.data(), &*place, sizeof *place);
  }
  held_ = std::move(frame);
}

bool MemoryConnection::take_back() {
  bool any = false;
  for (const bool told : {false, true}) {
    while (!unread_.empty() && out_.is_read(unread_.front().until)) {
      any = true;
      OutFrame frame = std::move(unread_.front().frame);
      unread_.pop_front();
      user_.frame_written(wire::Channel::memory, frame);
    }
    if (unread_.empty()) break;
    if (!told) (*own_).full.store(1);  // and once more: it may have been read before the other could know
  }
  return any;
}

bool MemoryConnection::write_held() {
  const std::span<const std::byte> parts[] = {held_->header, held_->lent ? std::span<const std::byte>(held_place_) : held_->payload};
  const std::size_t whole = parts[0].size() + parts[1].size();
  for (const bool told : {false, true}) {
    if (written_ < parts[0].size()) written_ += out_.write(parts[0].subspan(written_));
    if (written_ >= parts[0].size()) written_ += out_.write(parts[1].subspan(written_ - parts[0].size()));
    if (written_ == whole) return true;
    if (!told) (*own_).full.store(1);  // and once more: room may have come before the other could know
  }
  return false;
}

bool MemoryConnection::look() {
  std::size_t bytes = 0;
  while (!ended_ && bytes < kMemoryTurn && read_some(bytes)) {
  }
  if (bytes > 0 && other_.shared->full.load() != 0 && other_.shared->full.exchange(0) != 0) other_.wake();
  const bool back = !unread_.empty() && take_back();
  if (!held_) return bytes > 0 || back;
  const std::size_t before = written_;
  pump();
  return bytes > 0 || back || !held_ || written_ != before;
}

// False: nothing more now.
bool MemoryConnection::read_some(std::size_t& bytes) {
  std::size_t got = 0, wanted = 0;
  if (borrowed_ && place_bytes_ < place_.size()) {
    wanted = place_.size() - place_bytes_;
    got = in_.read(std::span(place_).subspan(place_bytes_));
    place_bytes_ += got;
    if (got == wanted && !begin_payload()) return false;
  } else if (remaining_ > 0) {
    got = read_payload(wanted);
    if (borrowed_) {
      std::atomic_thread_fence(std::memory_order_acquire);
      if (other_.shared->withdrawn.load() != 0) return end({});  // that may have been anything; who sent it is gone, as its control connection tells
    }
    remaining_ -= got;
    if (remaining_ == 0) loan_.reset();
    if (got > 0) user_.took(wire::Channel::memory, got);
  } else if (borrowed_) {
    std::array<std::byte, wire::kMarkBytes> mark{};
    wanted = mark.size() - mark_bytes_;
    got = in_.read(std::span(mark).first(wanted));
    mark_bytes_ += got;
    borrowed_ = got < wanted;
  } else if (message_bytes_ < message_.size()) {
    wanted = message_.size() - message_bytes_;
    got = in_.read(std::span(message_).subspan(message_bytes_));
    message_bytes_ += got;
    if (got == wanted && !end_message()) return false;
  } else {
    wanted = header_.size() - header_bytes_;
    got = in_.read(std::span(header_).subspan(header_bytes_));
    header_bytes_ += got;
    if (got == wanted && !begin_frame()) return false;
  }
  bytes += got;
  if (in_.broken()) return end(std::make_error_code(std::errc::protocol_error));
  return got == wanted;
}

// Returns how much it was of `wanted`.
std::size_t MemoryConnection::read_payload(std::size_t& wanted) {
  std::array<iovec, kAtOnce> pieces;
  const std::size_t count = user_.plan(wire::Channel::memory, pieces);
  std::size_t got = 0;
  for (std::size_t i = 0; i < count && got == wanted; ++i) {
    const std::span<std::byte> piece(static_cast<std::byte*>(pieces[i].iov_base), pieces[i].iov_len);
    wanted += piece.size();
    if (borrowed_) {
      std::memcpy(piece.data(), source_, piece.size());
      source_ += piece.size();
      got += piece.size();
    } else {
      got += in_.read(piece);
    }
  }
  return got;
}

// What was given is read where it lies, if the user has it so.
bool MemoryConnection::begin_payload() {
  std::uint64_t offset = 0;
  std::memcpy(&offset, place_.data(), sizeof offset);
  source_ = borrowing_->arena().find(offset, remaining_);
  if (!source_) return end(std::make_error_code(std::errc::protocol_error));
  if (!header_read_.given) return true;
  loan_ = borrowing_->loan();
  if (!user_.keep({source_, remaining_}, loan_)) return true;
  loan_.reset();
  user_.took(wire::Channel::memory, std::exchange(remaining_, 0));
  return true;
}

bool MemoryConnection::end_message() {
  const std::vector<std::byte> payload = std::exchange(message_, {});
  if (header_read_.kind != wire::Kind::returned) return user_.message(wire::Channel::memory, header_read_, payload) || end({});
  const auto returned = wire::decode_returned(payload);
  const bool right = returned && std::ranges::all_of(*returned, [&](const wire::Returned& some) { return given_.take_back(some); });
  return right || end(std::make_error_code(std::errc::protocol_error));
}

bool MemoryConnection::begin_frame() {
  header_bytes_ = 0;
  const auto header = wire::decode(header_, wire::Channel::memory);
  if (!header) return end(std::make_error_code(std::errc::protocol_error));
  header_read_ = *header;
  if (header->kind == wire::Kind::data) {
    remaining_ = header->length;
    borrowed_ = header->lent;
    place_bytes_ = mark_bytes_ = 0;
    return user_.data_begins(wire::Channel::memory, *header) || end({});
  }
  message_.resize(header->length);
  message_bytes_ = 0;
  return header->length > 0 || end_message();
}

// Returns false. Without a reason the user has said why.
bool MemoryConnection::end(std::error_code why) {
  ended_ = true;
  if (why) user_.ended(wire::Channel::memory, why);
  return false;
}

void MemoryConnections::add(MemoryConnection& connection) {
  if (all_.empty()) loop_.watch(*this);
  all_.push_back(&connection);
}

bool MemoryConnections::look() {
  bool found = false;
  for (MemoryConnection* connection : all_) found = connection->look() || found;
  return found;
}

void MemoryConnections::asleep(bool asleep) {
  for (MemoryConnection* connection : all_) connection->asleep(asleep);
}

}  // namespace shoal::net
