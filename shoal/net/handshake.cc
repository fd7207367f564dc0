#include "shoal/net/handshake.h"

#include <sodium.h>

#include <cstring>
#include <string_view>

#include "shoal/net/whole.h"

namespace shoal::net {
namespace {

constexpr std::array<unsigned char, 8> kOpening = {'S', 'H', 'O', 'A', 'L', 0, 0, 1};  // the last: version
constexpr std::size_t kPlain = kHelloBytes - 32;  // what the hello's proof covers
using Proof = std::array<unsigned char, 32>;

Proof proof_of(const Key& key, std::string_view word, std::span<const std::byte> hello, const Nonce& listener) {
  crypto_generichash_state state;
  Proof proof;
  crypto_generichash_init(&state, key.data(), key.size(), proof.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(word.data()), word.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(hello.data()), kPlain);
  crypto_generichash_update(&state, listener.data(), listener.size());
  crypto_generichash_final(&state, proof.data(), proof.size());
  return proof;
}

bool equal(const Proof& a, const unsigned char* b) { return sodium_memcmp(a.data(), b, a.size()) == 0; }

bool refuse(Socket& socket) {
  std::error_code ignored;
  socket.close(ignored);
  return false;
}

}  // namespace

Key derive_key(const std::string& secret) {
  constexpr std::string_view label = "shoal: key of the job";
  Key key;
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, key.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(label.data()), label.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(secret.data()), secret.size());
  crypto_generichash_final(&state, key.data(), key.size());
  return key;
}

std::array<unsigned char, 32> hash_of_job(const std::string& words) {
  std::array<unsigned char, 32> hash;
  crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(words.data()), words.size(),
                     nullptr, 0);
  return hash;
}

std::array<std::byte, kHelloBytes> encode_hello(const Key& key, const Hello& hello) {
  std::array<std::byte, kHelloBytes> out{};
  const auto put = [&out](std::size_t at, const void* from, std::size_t size) { std::memcpy(out.data() + at, from, size); };
  const Purpose& p = hello.purpose;
  put(0, kOpening.data(), 8);
  const std::uint8_t counts[4] = {static_cast<std::uint8_t>(p.role), p.connections, p.io_threads, 0};
  put(8, counts, 4);
  put(12, &p.from, 4);
  put(16, &p.to, 4);
  put(24, p.job.data(), 32);
  put(56, hello.nonce.data(), 32);
  const Proof proof = proof_of(key, "hello", out, Nonce{});
  put(kPlain, proof.data(), proof.size());
  return out;
}

std::optional<Hello> decode_hello(const Key& key, std::span<const std::byte, kHelloBytes> bytes) {
  if (std::memcmp(bytes.data(), kOpening.data(), kOpening.size()) != 0) return {};
  if (!equal(proof_of(key, "hello", bytes, Nonce{}), reinterpret_cast<const unsigned char*>(bytes.data()) + kPlain)) return {};
  Hello hello;
  Purpose& p = hello.purpose;
  std::uint8_t counts[4];
  std::memcpy(counts, bytes.data() + 8, 4);
  if (counts[0] > static_cast<std::uint8_t>(Role::coordinator)) return {};
  p.role = static_cast<Role>(counts[0]);
  p.connections = counts[1];
  p.io_threads = counts[2];
  std::memcpy(&p.from, bytes.data() + 12, 4);
  std::memcpy(&p.to, bytes.data() + 16, 4);
  std::memcpy(p.job.data(), bytes.data() + 24, 32);
  std::memcpy(hello.nonce.data(), bytes.data() + 56, 32);
  return hello;
}

asio::awaitable<bool> prove_as_dialer(Socket& socket, const Key& key, const Purpose& purpose) {
  const Deadline deadline(socket, kHandshakeDeadline);
  Hello hello{purpose, {}};
  randombytes_buf(hello.nonce.data(), hello.nonce.size());
  const auto opening = encode_hello(key, hello);
  if (!co_await write_all(socket, opening)) co_return refuse(socket);
  std::array<unsigned char, 64> answer;
  if (!co_await read_all(socket, answer)) co_return refuse(socket);
  Nonce theirs;
  std::copy_n(answer.begin(), theirs.size(), theirs.begin());
  if (!equal(proof_of(key, "listener", opening, theirs), answer.data() + 32)) co_return refuse(socket);
  const Proof mine = proof_of(key, "dialer", opening, theirs);
  if (!co_await write_all(socket, mine)) co_return refuse(socket);
  Proof ready;
  if (!co_await read_all(socket, ready)) co_return refuse(socket);
  if (!equal(ready, proof_of(key, "ready", opening, theirs).data())) co_return refuse(socket);
  co_return true;
}

asio::awaitable<std::optional<Purpose>> prove_as_listener(Socket& socket, const Key& key,
                                                          const std::function<bool(const Purpose&)>& welcome) {
  const Deadline deadline(socket, kHandshakeDeadline);
  std::array<std::byte, kHelloBytes> opening;
  std::optional<Hello> hello;
  if (co_await read_all(socket, opening)) hello = decode_hello(key, opening);
  if (!hello || !welcome(hello->purpose)) {
    refuse(socket);
    co_return std::nullopt;
  }
  Nonce ours;
  randombytes_buf(ours.data(), ours.size());
  std::array<unsigned char, 64> answer;
  const Proof proof = proof_of(key, "listener", opening, ours);
  std::copy(ours.begin(), ours.end(), answer.begin());
  std::copy(proof.begin(), proof.end(), answer.begin() + 32);
  const Proof ready = proof_of(key, "ready", opening, ours);
  Proof theirs;
  bool proved = co_await write_all(socket, answer);
  if (proved) proved = co_await read_all(socket, theirs);
  if (proved) proved = equal(proof_of(key, "dialer", opening, ours), theirs.data());
  if (proved) proved = co_await write_all(socket, ready);
  if (!proved) {
    refuse(socket);
    co_return std::nullopt;
  }
  co_return hello->purpose;
}

}  // namespace shoal::net
