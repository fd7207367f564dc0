#include "shoal/net/frame.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace shoal::net::wire {
namespace {

constexpr unsigned kEager = 1, kLent = 2, kFollows = 4, kGiven = 8, kDry = 16;  // flags

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little endian; add byte swaps for this machine");

template <typename T>
void append(std::string& out, T value) {
  static_assert(std::is_integral_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Reads integers and text from a payload; `ok` turns false at the first byte that is missing.
class FrameReader {
 public:
  explicit FrameReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T take() {
    T value{};
    if (bytes_.size() < sizeof value) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  std::string rest(std::size_t limit) {
    if (bytes_.size() > limit) ok_ = false;
    if (!ok_) return {};
    std::string text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    bytes_ = {};
    return text;
  }
  std::size_t left() const { return bytes_.size(); }
  bool ok() const { return ok_; }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

bool allowed(const Header& h, Channel channel) {
  const bool urgent = h.kind == Kind::data && h.cls == Class::urgent && h.length > 0 && h.length <= kUrgentLimit;
  const bool bulk = h.kind == Kind::data ? h.cls != Class::urgent && h.length > 0 && h.length <= kMaxFrame
                                         : (h.kind == Kind::request || h.kind == Kind::dry) && h.length == 0;
  if (channel == Channel::bulk) return bulk;
  if (channel == Channel::memory) return urgent || bulk || ((h.kind == Kind::credit || h.kind == Kind::returned) && h.length <= kUrgentLimit);
  switch (h.kind) {
    case Kind::data: return urgent;
    case Kind::goodbye: return h.length == 0;
    case Kind::credit:
    case Kind::heartbeat:
    case Kind::failure:
    case Kind::lost:
    case Kind::silent: return h.length <= kUrgentLimit;
    case Kind::mailbox: return h.length <= kMaxMailbox;
    case Kind::segment: return h.length <= 16;
    case Kind::attached: return h.length == 1;
    case Kind::request:
    case Kind::dry:
    case Kind::returned: return false;
  }
  return false;
}

}  // namespace

HeaderBytes encode(const Header& h) {
  HeaderBytes out{};
  const auto put = [&out](std::size_t at, auto value) { std::memcpy(out.data() + at, &value, sizeof value); };
  put(0, h.length);
  put(4, static_cast<std::uint8_t>(h.kind));
  put(5, static_cast<std::uint8_t>(h.cls));
  put(6, static_cast<std::uint16_t>((h.eager ? kEager : 0) | (h.lent ? kLent : 0) | (h.follows ? kFollows : 0) | (h.given ? kGiven : 0) |
                                    (h.dry ? kDry : 0)));
  put(8, h.tag.lane);
  put(12, h.packed);
  put(16, h.tag.operation);
  put(24, h.offset);
  put(32, h.consumed);
  return out;
}

std::optional<Header> decode(std::span<const std::byte, kHeaderBytes> bytes, Channel channel) {
  FrameReader in(bytes);
  Header h;
  h.length = in.take<std::uint32_t>();
  const auto kind = in.take<std::uint8_t>();
  const auto cls = in.take<std::uint8_t>();
  const auto flags = in.take<std::uint16_t>();
  h.tag.lane = in.take<std::uint32_t>();
  h.packed = in.take<std::uint32_t>();
  h.tag.operation = in.take<std::uint64_t>();
  h.offset = in.take<std::uint64_t>();
  h.consumed = in.take<std::uint64_t>();
  if (kind < static_cast<std::uint8_t>(Kind::data) || kind > static_cast<std::uint8_t>(Kind::dry)) return {};
  if (cls > static_cast<std::uint8_t>(Class::background) || flags > (kEager | kLent | kFollows | kGiven | kDry)) return {};
  h.kind = static_cast<Kind>(kind);
  h.cls = static_cast<Class>(cls);
  h.eager = flags & kEager;
  h.lent = flags & kLent;
  h.follows = flags & kFollows;
  h.given = flags & kGiven;
  h.dry = flags & kDry;
  if (h.lent && (h.kind != Kind::data || channel != Channel::memory)) return {};
  if (h.given && !h.lent) return {};
  if (h.follows && (h.kind != Kind::data || channel != Channel::bulk)) return {};
  if (h.dry && h.kind != Kind::data) return {};
  if (h.packed > 0 && (h.kind != Kind::data || channel != Channel::bulk || h.packed >= h.length)) return {};
  if (!allowed(h, channel)) return {};
  return h;
}

std::string encode(const Credit& credit) {
  std::string out;
  append(out, credit.consumed);
  for (const Grant& grant : credit.grants) {
    append(out, grant.tag.operation);
    append(out, grant.tag.lane);
    append(out, grant.base);
    append(out, grant.limit);
  }
  return out;
}

std::optional<Credit> decode_credit(std::span<const std::byte> payload) {
  FrameReader in(payload);
  Credit credit;
  credit.consumed = in.take<std::uint64_t>();
  constexpr std::size_t kGrantBytes = 8 + 4 + 8 + 8;
  if (!in.ok() || in.left() % kGrantBytes != 0 || in.left() / kGrantBytes > kGrantsPerFrame) return {};
  credit.grants.resize(in.left() / kGrantBytes);
  for (Grant& grant : credit.grants) {
    grant.tag.operation = in.take<std::uint64_t>();
    grant.tag.lane = in.take<std::uint32_t>();
    grant.base = in.take<std::uint64_t>();
    grant.limit = in.take<std::uint64_t>();
    if (grant.limit < grant.base) return {};
  }
  return credit;
}

std::string encode(std::span<const Returned> returned) {
  std::string out;
  for (const Returned& some : returned) {
    append(out, some.first);
    append(out, some.count);
  }
  return out;
}

std::optional<std::vector<Returned>> decode_returned(std::span<const std::byte> payload) {
  FrameReader in(payload);
  constexpr std::size_t kBytes = 8 + 8;
  if (in.left() % kBytes != 0 || in.left() / kBytes > kReturnedPerFrame) return {};
  std::vector<Returned> returned(in.left() / kBytes);
  for (Returned& some : returned) {
    some.first = in.take<std::uint64_t>();
    some.count = in.take<std::uint64_t>();
  }
  return returned;
}

std::string encode(const Heartbeat& heartbeat) {
  std::string out;
  append(out, heartbeat.sent_ns);
  append(out, heartbeat.echo_ns);
  append(out, heartbeat.held_ns);
  out.append(heartbeat.activity, 0, std::min(heartbeat.activity.size(), kMaxActivity));
  return out;
}

std::optional<Heartbeat> decode_heartbeat(std::span<const std::byte> payload) {
  FrameReader in(payload);
  Heartbeat heartbeat;
  heartbeat.sent_ns = in.take<std::int64_t>();
  heartbeat.echo_ns = in.take<std::int64_t>();
  heartbeat.held_ns = in.take<std::int64_t>();
  heartbeat.activity = in.rest(kMaxActivity);
  if (!in.ok()) return {};
  return heartbeat;
}

std::string encode(const Notice& notice) {
  std::string out;
  append(out, notice.culprit);
  append(out, static_cast<std::uint8_t>(notice.code));
  out.append(notice.reason, 0, std::min(notice.reason.size(), kMaxReason));
  return out;
}

std::optional<Notice> decode_notice(std::span<const std::byte> payload) {
  FrameReader in(payload);
  Notice notice;
  notice.culprit = in.take<std::uint32_t>();
  const auto code = in.take<std::uint8_t>();
  notice.reason = in.rest(kMaxReason);
  if (!in.ok() || code > static_cast<std::uint8_t>(Code::peer_lost)) return {};
  notice.code = static_cast<Code>(code);
  return notice;
}

}  // namespace shoal::net::wire
