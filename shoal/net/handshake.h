// The keyed challenge that opens every connection, peers' and coordinator's alike. Fixed-size messages; nothing
// else is read before both sides have proved that they know the job's secret. Each proof is a keyed BLAKE2b hash
// over role, both nonces and what the connection is for, so none can be used twice or elsewhere:
//
//   dialer   -> hello: purpose, nonce d, H(key, "hello", purpose, d)
//   listener -> nonce l, H(key, "listener", purpose, d, l)          nothing before the hello was proved
//   dialer   -> H(key, "dialer", purpose, d, l)
//   listener -> H(key, "ready", purpose, d, l)
//
// Without a secret the key is that of the empty one: the job is then bound to loopback (see join.cc).
#pragma once

#include <array>
#include <asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "shoal/net/sockets.h"

namespace shoal::net {

using Key = std::array<unsigned char, 32>;
Key derive_key(const std::string& secret);

enum class Role : std::uint8_t { control = 0, bulk = 1, coordinator = 2 };
struct Purpose {
  Role role = Role::control;
  std::uint8_t connections = 1;  // bulk connections a peer; more than 1 is for later
  std::uint8_t io_threads = 1;
  std::uint32_t from = 0, to = 0;          // ranks; 0 for the coordinator
  std::array<unsigned char, 32> job{};     // hash_of_job()
};
std::array<unsigned char, 32> hash_of_job(const std::string& words);  // job, generation, scope, size ...

inline constexpr std::size_t kHelloBytes = 8 + 4 + 4 + 4 + 4 + 32 + 32 + 32;
using Nonce = std::array<unsigned char, 32>;
struct Hello {
  Purpose purpose;
  Nonce nonce{};
};
std::array<std::byte, kHelloBytes> encode_hello(const Key& key, const Hello& hello);
// nullopt: wrong bytes or wrong secret; which of the two is nobody's business.
std::optional<Hello> decode_hello(const Key& key, std::span<const std::byte, kHelloBytes> bytes);

inline constexpr auto kHandshakeDeadline = std::chrono::seconds(5);
// Both end within the deadline; false or nullopt: refused, closed or too slow; the socket is closed then.
asio::awaitable<bool> prove_as_dialer(Socket& socket, const Key& key, const Purpose& purpose);
// `welcome` says whether a proved purpose is wanted here.
asio::awaitable<std::optional<Purpose>> prove_as_listener(Socket& socket, const Key& key,
                                                          const std::function<bool(const Purpose&)>& welcome);

}  // namespace shoal::net
