// The keyed challenge that opens every connection, peers' and coordinator's alike. Fixed-size messages; nothing
// else is read before both sides have proved that they know the job's secret. Each proof is a keyed BLAKE2b hash
// over role, both nonces and what the connection is for, so none can be used twice or elsewhere:
//
//   dialer   -> hello: purpose, nonce d, H(key, "hello", purpose, d)
//   listener -> nonce l, H(key, "listener", purpose, d, l)          nothing before the hello was proved
//   dialer   -> H(key, "dialer", purpose, d, l)
//   listener -> H(key, "ready", purpose, d, l)
//   dialer   -> H(key, "here", purpose, d, l)
//
// A listener that knows the dialer for one of its own and still does not want it says so in place of "listener": "taken",
// "stale", "elsewhere", "busy".
//
// Both ends agree on whether the connection exists, however late one of them runs: a dialer gives up only before it has read
// "ready", after which it says "here" and stays; a listener that has said "ready" has no connection until it hears "here".
//
// A secret must be random (`openssl rand -hex 32`): its key is one hash of it, and who listens can try a word's worth of guesses.
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

// What to do where the two proofs differ.
inline constexpr const char* kOneSecret = "set SHOAL_SECRET, or SHOAL_SECRET_FILE, to the same on all members";

inline constexpr std::uint32_t kNobody = UINT32_MAX;
enum class Role : std::uint8_t { control = 0, bulk = 1, coordinator = 2 };
struct Purpose {
  Role role = Role::control;
  std::uint8_t connections = 1;  // bulk connections a peer; more than 1 is for later
  std::uint8_t io_threads = 1;
  std::uint32_t from = 0, to = 0;          // ranks; to the coordinator: rank or kNobody, generation
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

// The purpose that a hello of ours names, unproved: whoever wrote it may not know the secret. nullopt for other bytes.
std::optional<Purpose> claimed_by(std::span<const std::byte, kHelloBytes> bytes);

// What comes of a connection.
enum class Answer : std::uint8_t {
  welcome,
  taken,     // another connection from this rank exists
  stale,     // a later generation of the job has begun
  elsewhere, // this listener is for another run
  busy,      // not now, or not here
  unproved,  // closed without a byte: they do not know this secret, or are none of ours
  foreign,   // answered with bytes that are not ours
  silent,    // nobody is there, or not in time
};

inline constexpr auto kHandshakeDeadline = std::chrono::seconds(5);
// Ends within the deadline; the socket is closed unless it is welcome.
asio::awaitable<Answer> prove_as_dialer(Socket& socket, const Key& key, const Purpose& purpose);

struct Heard {
  std::optional<Purpose> proved;   // the connection exists; else the socket is closed
  std::optional<Purpose> claimed;  // refused, but its hello had our form
};
// `welcome` says what becomes of a proved purpose: welcome, taken, stale, elsewhere or busy. Whoever does not prove the secret is closed
// at the deadline; whoever has may take a minute to say "here".
asio::awaitable<Heard> prove_as_listener(Socket& socket, const Key& key, const std::function<Answer(const Purpose&)>& welcome);

}  // namespace shoal::net
