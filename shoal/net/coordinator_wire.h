// What a coordinator and its clients say to each other, after the challenge that opens their connection (handshake.h): one
// request, one reply. For coordinator.cc and coordinator_client.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "shoal/core/error.h"
#include "shoal/net/handshake.h"

namespace shoal::net::coordination {

inline constexpr std::size_t kMaxKey = 256, kMaxValue = Rendezvous::kLongestValue;

// Numbers as this machine has them, little-endian; what is between fields is zero.
//
//   request  0   4            8              12   16           24
//            op  key's bytes  value's bytes       patience ns  key ... value ...
//   reply    0       4              8
//            status  value's bytes  value ...
enum class Op : std::uint32_t {
  put = 1,
  get = 2,
  put_first = 3,  // where nothing is under the key; the reply has what is there then
};
enum class Status : std::uint32_t {
  ok = 0,
  timeout = 1,
  full = 2,
  hopeless = 3,  // the members will never be complete; the value says why and, after a line break, what to do
};
struct Request {
  Op op;
  std::uint32_t key = 0, value = 0;
  std::int64_t patience_ns = 0;
};
struct Reply {
  Status status = Status::ok;
  std::uint32_t value = 0;
};
inline constexpr std::size_t kRequestBytes = 24, kReplyBytes = 8;

inline std::array<std::byte, kRequestBytes> encode(const Request& r) {
  std::array<std::byte, kRequestBytes> out{};
  std::memcpy(out.data(), &r.op, 4);
  std::memcpy(out.data() + 4, &r.key, 4);
  std::memcpy(out.data() + 8, &r.value, 4);
  std::memcpy(out.data() + 16, &r.patience_ns, 8);
  return out;
}

inline std::optional<Request> decode_request(const std::array<std::byte, kRequestBytes>& in) {
  Request r{};
  std::memcpy(&r.op, in.data(), 4);
  std::memcpy(&r.key, in.data() + 4, 4);
  std::memcpy(&r.value, in.data() + 8, 4);
  std::memcpy(&r.patience_ns, in.data() + 16, 8);
  const bool known = r.op == Op::put || r.op == Op::get || r.op == Op::put_first;
  if (!known || r.key == 0 || r.key > kMaxKey || r.value > kMaxValue || r.patience_ns < 0) return {};
  return r;
}

inline std::array<std::byte, kReplyBytes> encode(const Reply& r) {
  std::array<std::byte, kReplyBytes> out{};
  std::memcpy(out.data(), &r.status, 4);
  std::memcpy(out.data() + 4, &r.value, 4);
  return out;
}

inline std::optional<Reply> decode_reply(const std::array<std::byte, kReplyBytes>& in) {
  Reply r;
  std::memcpy(&r.status, in.data(), 4);
  std::memcpy(&r.value, in.data() + 4, 4);
  if (r.status > Status::hopeless || r.value > kMaxValue) return {};
  return r;
}

// Who does not name the same run is none of its members, though he may know the same secret.
inline std::array<unsigned char, 32> purpose_of(const std::string& job) { return hash_of_job("shoal coordinator\n" + job); }

}  // namespace shoal::net::coordination
