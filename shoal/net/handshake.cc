#include "shoal/net/handshake.h"

#include <sodium.h>

#include <algorithm>
#include <asio/error.hpp>
#include <cstring>
#include <string_view>
#include <utility>

#include "shoal/net/whole.h"

namespace shoal::net {
namespace {

constexpr std::array<unsigned char, 8> kOpening = {'S', 'H', 'O', 'A', 'L', 0, 0, 4};  // the last: version
constexpr std::size_t kPlain = kHelloBytes - 32;  // what the hello's proof covers
constexpr auto kHereDeadline = std::chrono::minutes(1);  // a dialer that knows the secret vanished without a word
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

void close(Socket& socket) {
  std::error_code ignored;
  socket.close(ignored);
}

// In a hello: purpose and nonce without the proof.
std::optional<Hello> read_hello(std::span<const std::byte, kHelloBytes> bytes) {
  if (std::memcmp(bytes.data(), kOpening.data(), kOpening.size()) != 0) return {};
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

// What a listener may say to a hello: the word that its proof covers.
constexpr std::pair<Answer, std::string_view> kWords[] = {
    {Answer::welcome, "listener"}, {Answer::taken, "taken"}, {Answer::stale, "stale"}, {Answer::elsewhere, "elsewhere"},
    {Answer::busy, "busy"}};

std::string_view word_of(Answer answer) {
  for (const auto& [known, word] : kWords) {
    if (known == answer) return word;
  }
  return "busy";
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
  if (!equal(proof_of(key, "hello", bytes, Nonce{}), reinterpret_cast<const unsigned char*>(bytes.data()) + kPlain)) return {};
  return read_hello(bytes);
}

std::optional<Purpose> claimed_by(std::span<const std::byte, kHelloBytes> bytes) {
  const auto hello = read_hello(bytes);
  return hello ? std::optional(hello->purpose) : std::nullopt;
}

namespace {

// Until "ready" has been read.
asio::awaitable<Answer> ask_to_be_let_in(Socket& socket, const Key& key, const Hello& hello, Proof& here) {
  const Deadline deadline(socket, kHandshakeDeadline);
  const auto opening = encode_hello(key, hello);
  if (!co_await write_all(socket, opening)) co_return Answer::silent;
  std::array<unsigned char, 64> answer;
  std::error_code error;
  const std::size_t got = co_await asio::async_read(socket, asio::buffer(answer), asio::redirect_error(asio::use_awaitable, error));
  if (got == 0) co_return error == asio::error::eof ? Answer::unproved : Answer::silent;
  if (got < answer.size()) co_return Answer::foreign;
  Nonce theirs;
  std::copy_n(answer.begin(), theirs.size(), theirs.begin());
  const auto said = std::find_if(std::begin(kWords), std::end(kWords), [&](const auto& known) {
    return equal(proof_of(key, known.second, opening, theirs), answer.data() + theirs.size());
  });
  if (said == std::end(kWords)) co_return Answer::foreign;
  if (said->first != Answer::welcome) co_return said->first;
  const Proof mine = proof_of(key, "dialer", opening, theirs);
  if (!co_await write_all(socket, mine)) co_return Answer::silent;
  Proof ready;
  if (!co_await read_all(socket, ready)) co_return Answer::silent;
  if (!equal(ready, proof_of(key, "ready", opening, theirs).data())) co_return Answer::foreign;
  here = proof_of(key, "here", opening, theirs);
  co_return Answer::welcome;
}

// Until "ready" has been written.
asio::awaitable<Heard> let_in(Socket& socket, const Key& key, const std::function<Answer(const Purpose&)>& welcome, Proof& here) {
  const Deadline deadline(socket, kHandshakeDeadline);
  std::array<std::byte, kHelloBytes> opening;
  if (!co_await read_all(socket, opening)) co_return Heard{};
  const std::optional<Hello> hello = decode_hello(key, opening);
  if (!hello) co_return Heard{.proved = {}, .claimed = claimed_by(opening)};
  const Answer said = welcome(hello->purpose);
  Nonce ours;
  randombytes_buf(ours.data(), ours.size());
  std::array<unsigned char, 64> answer;
  const Proof proof = proof_of(key, word_of(said), opening, ours);
  std::copy(ours.begin(), ours.end(), answer.begin());
  std::copy(proof.begin(), proof.end(), answer.begin() + 32);
  const Proof ready = proof_of(key, "ready", opening, ours);
  Proof theirs;
  if (!co_await write_all(socket, answer) || said != Answer::welcome) co_return Heard{};
  if (!co_await read_all(socket, theirs)) co_return Heard{};
  if (!equal(proof_of(key, "dialer", opening, ours), theirs.data())) co_return Heard{};
  if (!co_await write_all(socket, ready)) co_return Heard{};
  here = proof_of(key, "here", opening, ours);
  co_return Heard{.proved = hello->purpose, .claimed = {}};
}

}  // namespace

asio::awaitable<Answer> prove_as_dialer(Socket& socket, const Key& key, const Purpose& purpose) {
  Hello hello{purpose, {}};
  randombytes_buf(hello.nonce.data(), hello.nonce.size());
  Proof here;
  Answer answer = co_await ask_to_be_let_in(socket, key, hello, here);
  if (answer == Answer::welcome && !co_await write_all(socket, here)) answer = Answer::silent;
  if (answer != Answer::welcome) close(socket);
  co_return answer;
}

asio::awaitable<Heard> prove_as_listener(Socket& socket, const Key& key, const std::function<Answer(const Purpose&)>& welcome) {
  Proof expected, here;
  Heard heard = co_await let_in(socket, key, welcome, expected);
  if (heard.proved) {
    const Deadline deadline(socket, kHereDeadline);
    if (!co_await read_all(socket, here) || !equal(expected, here.data())) heard.proved.reset();
  }
  if (!heard.proved) close(socket);
  co_return heard;
}

}  // namespace shoal::net
