// Raw transport: bench/net/bench_net_stream [--bytes 1073741824] [--members 2] [--small 2000]
// Loopback, one process a member. First the latency of a 4 KB ping-pong between ranks 0 and 1 with waiting callers that
// drive the loop, then the rate of everyone sending `bytes` to everyone else at once, pieces of 1 MB. Verified before timing.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "members.h"

namespace {

using namespace shoal;
using namespace std::chrono_literals;

std::uint64_t option(int argc, char** argv, const char* name, std::uint64_t fallback) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return std::strtoull(argv[i + 1], nullptr, 10);
  }
  return fallback;
}

void ping_pong(net::Transport& t, std::size_t bytes, std::uint64_t rounds) {
  if (t.rank() > 1) return;
  std::vector<std::byte> out(bytes, std::byte{5}), in(bytes);
  std::vector<double> us;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const Instant start = steady_now();
    std::atomic<bool> done{false};
    t.post([&] {
      const net::Tag tag{bytes << 32 | i, 0};  // an operation is never used twice
      t.receive(1 - t.rank(), tag, {}, std::span(in), [&, tag](const net::Failure&) {
        if (t.rank() == 0) { t.close(tag.operation, nullptr); done = true; return; }
        t.send(0, tag, {}, std::span(in), [&, tag](const net::Failure&) { t.close(tag.operation, nullptr); done = true; });
      });
      if (t.rank() == 0) t.send(1, tag, {}, std::span(out), {});
    });
    if (!t.drive([&] { return done.load(); }, steady_now() + 10s)) throw Error(Code::timeout, "no answer to a ping");
    if (in != out) throw Error(Code::internal, "a ping came back changed");
    us.push_back(Seconds(steady_now() - start).count() * 1e6);
  }
  std::sort(us.begin(), us.end());
  if (t.rank() == 0) {
    std::printf("ping-pong %zu B: round trip p50 %.1f us, p95 %.1f, p99 %.1f\n", bytes, us[us.size() / 2],
                us[us.size() * 95 / 100], us[us.size() * 99 / 100]);
  }
}

void everyone(net::Transport& t, std::uint64_t bytes, std::uint64_t operation) {
  constexpr std::size_t kPiece = 1 << 20;
  const std::uint64_t pieces = std::max<std::uint64_t>(1, bytes / kPiece);
  std::vector<std::byte> out(kPiece, static_cast<std::byte>(t.rank() + 1));
  std::vector<std::vector<std::byte>> in(t.size(), std::vector<std::byte>(kPiece));
  std::atomic<std::uint64_t> left{2 * (t.size() - 1)};
  std::vector<std::uint64_t> to_send(t.size(), pieces), to_receive(t.size(), pieces);
  std::function<void(net::Rank)> send = [&](net::Rank peer) {
    if (to_send[peer] == 0) { --left; return; }
    --to_send[peer];
    t.send(peer, {operation, 0}, {}, std::span(out), [&, peer](const net::Failure&) { send(peer); });
  };
  std::function<void(net::Rank)> receive = [&](net::Rank peer) {
    if (to_receive[peer] == 0) { --left; return; }
    --to_receive[peer];
    t.receive(peer, {operation, 0}, {}, std::span(in[peer]), [&, peer](const net::Failure&) { receive(peer); });
  };
  const Instant start = steady_now();
  t.post([&] {
    for (net::Rank peer = 0; peer < t.size(); ++peer) {
      if (peer == t.rank()) continue;
      receive(peer);
      receive(peer);  // two ahead
      ++left;
      send(peer);
    }
  });
  if (!t.drive([&] { return left == 0; }, steady_now() + 300s)) throw Error(Code::timeout, "the streams stand still");
  const double seconds = Seconds(steady_now() - start).count();
  for (net::Rank peer = 0; peer < t.size(); ++peer) {
    if (peer != t.rank() && in[peer][77] != static_cast<std::byte>(peer + 1)) throw Error(Code::internal, "wrong bytes");
  }
  std::printf("rank %u: received %.2f GB/s (%.3f s)\n", t.rank(), static_cast<double>(pieces * kPiece * (t.size() - 1)) / seconds / 1e9, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  bench::Team team;
  team.size = static_cast<net::Rank>(option(argc, argv, "--members", 2));
  const std::uint64_t bytes = option(argc, argv, "--bytes", 1 << 30), small = option(argc, argv, "--small", 2000);
  return bench::run(team, [&](net::Job& job) {
    ping_pong(job.transport(), 8, small);
    ping_pong(job.transport(), 4096, small);
    for (std::uint64_t round = 0; round < 3; ++round) everyone(job.transport(), bytes, (1u << 30) + round);
  });
}
