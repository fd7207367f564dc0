// An urgent 1 KB message every 50 ms under a saturating bulk flow: one-way latency and the bulk's rate.
//   bench_net_urgent [--namespaces a,b,c,d --coordinator 10.0.0.1:0] [--rate-mbit 200] [--messages 200] [--mode idle|busy|incast]
// idle: rank 1 sends bulk and urgent to rank 0. busy: the same with a computing thread per core beside every member.
// incast: every other rank sends bulk to rank 0, rank 1 the urgent messages as well. One machine, so one clock: the
// message carries the time at which it was sent. Its bytes and those of the bulk are checked.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>

#include "members.h"

namespace {

using namespace shoal;
using namespace std::chrono_literals;

struct Options {
  bench::Team team;
  double rate_mbit = 0;
  int messages = 200;
  std::string mode = "idle";
};

Options read(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--rate-mbit") options.rate_mbit = std::atof(value.c_str());
    if (name == "--messages") options.messages = std::atoi(value.c_str());
    if (name == "--mode") options.mode = value;
    if (name == "--coordinator") options.team.coordinator = value;
    if (name == "--namespaces") {
      std::istringstream names(value);
      for (std::string one; std::getline(names, one, ',');) options.team.namespaces.push_back(one);
    }
  }
  options.team.size = options.mode == "incast" ? 4 : 2;
  return options;
}

constexpr std::size_t kPiece = 1 << 20, kUrgent = 1024;
constexpr net::Tag kBulk{1, 0}, kUrgentTag{2, 0}, kStop{3, 0};

// Keeps `ahead` receives of the bulk stream of one sender open until `stop`.
struct BulkReceiver {
  net::Transport& t;
  net::Rank from;
  std::vector<std::vector<std::byte>> pieces = std::vector<std::vector<std::byte>>(4, std::vector<std::byte>(kPiece));
  std::uint64_t bytes = 0, wrong = 0;
  void begin() {
    for (auto& piece : pieces) post(piece);
  }
  void post(std::vector<std::byte>& piece) {
    t.receive(from, kBulk, {net::Class::bulk, 1, 0}, std::span(piece), [this, &piece](const net::Failure& failure) {
      if (failure) return;
      bytes += piece.size();
      wrong += piece[bytes % kPiece] != static_cast<std::byte>(from + 1);
      post(piece);
    });
  }
};

void receive_all(net::Transport& t, const Options& options) {
  std::vector<BulkReceiver> bulk;
  bulk.reserve(t.size());
  for (net::Rank peer = 1; peer < t.size(); ++peer) bulk.push_back({t, peer});
  std::vector<double> ms;
  std::vector<std::byte> message(kUrgent);
  std::atomic<bool> done{false};
  std::uint64_t first_bytes = 0, last_bytes = 0;
  Instant first{}, last{};
  const auto total = [&] {
    std::uint64_t sum = 0;
    for (net::Rank peer = 1; peer < t.size(); ++peer) sum += t.link(peer).received;
    return sum;
  };
  std::function<void()> next = [&] {
    t.receive(1, kUrgentTag, {net::Class::urgent, 0, 0}, std::span(message), [&](const net::Failure& failure) {
      if (failure) { done = true; return; }
      const Instant now = steady_now();
      std::int64_t sent_ns = 0;
      std::memcpy(&sent_ns, message.data(), sizeof sent_ns);
      ms.push_back(static_cast<double>(now.time_since_epoch().count() - sent_ns) / 1e6);
      if (message[kUrgent - 1] != std::byte{42}) std::printf("wrong urgent bytes\n");
      if (ms.size() == 20) first = now, first_bytes = total();
      last = now, last_bytes = total();
      if (ms.size() == static_cast<std::size_t>(options.messages)) done = true;
      else next();
    });
  };
  t.post([&] {
    next();
    for (BulkReceiver& one : bulk) one.begin();
  });
  t.drive([&] { return done.load(); }, steady_now() + 300s);
  if (const net::Failure failure = t.failure()) throw Error(*failure);
  std::vector<std::byte> stop(1);
  std::atomic<int> told{static_cast<int>(t.size() - 1)};
  t.post([&] {
    t.close(kBulk.operation, nullptr);
    for (net::Rank peer = 1; peer < t.size(); ++peer) {
      t.send(peer, kStop, {net::Class::urgent, 0, 0}, std::span(stop), [&](const net::Failure&) { --told; });
    }
  });
  t.drive([&] { return told == 0; }, steady_now() + 10s);
  ms.erase(ms.begin(), ms.begin() + std::min<std::ptrdiff_t>(20, static_cast<std::ptrdiff_t>(ms.size())));  // start-up
  std::sort(ms.begin(), ms.end());
  std::uint64_t wrong = 0;
  for (const BulkReceiver& one : bulk) wrong += one.wrong;
  if (ms.empty() || wrong) throw Error(Code::internal, ms.empty() ? "too few messages" : "wrong bytes");
  const double rate = static_cast<double>(last_bytes - first_bytes) / Seconds(last - first).count();
  std::printf("%s: urgent one way p50 %.2f ms, p95 %.2f, max %.2f; bulk %.2f MB/s", options.mode.c_str(), ms[ms.size() / 2],
              ms[ms.size() * 95 / 100], ms.back(), rate / 1e6);
  if (options.rate_mbit > 0) {
    // A frame of 1500 bytes carries 1448 of payload and takes 1514 of a tbf's tokens.
    std::printf(" = %.3f of the link's payload rate", rate / (options.rate_mbit * 1e6 / 8 * 1448 / 1514));
  }
  std::printf("\n");
}

void send_all(net::Transport& t) {
  std::vector<std::byte> piece(kPiece, static_cast<std::byte>(t.rank() + 1)), message(kUrgent, std::byte{42}), stop(1);
  std::atomic<bool> stopped{false};
  std::function<void()> bulk = [&] {
    if (!stopped) t.send(0, kBulk, {net::Class::bulk, 1, 0}, std::span(piece), [&](const net::Failure& f) { if (!f) bulk(); });
  };
  std::uint64_t timer = 0;
  std::function<void()> urgent = [&] {
    const std::int64_t now = steady_now().time_since_epoch().count();
    std::memcpy(message.data(), &now, sizeof now);
    t.send(0, kUrgentTag, {net::Class::urgent, 0, 0}, std::span(message), [](const net::Failure&) {});
    timer = t.at(t.now() + 50ms, urgent);
  };
  t.post([&] {
    t.receive(0, kStop, {net::Class::urgent, 0, 0}, std::span(stop), [&](const net::Failure&) {
      stopped = true;
      t.cancel(timer);
      t.close(kBulk.operation, nullptr);
    });
    bulk();
    bulk();
    if (t.rank() == 1) urgent();
  });
  t.drive([&] { return stopped.load(); }, steady_now() + 300s);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read(argc, argv);
  return bench::run(options.team, [&](net::Job& job) {
    std::atomic<bool> compute{options.mode == "busy"};
    std::vector<std::thread> threads;
    const bool hosts_compute = options.mode == "busy" && job.transport().rank() == 0;  // one a core of the machine
    for (unsigned i = 0; hosts_compute && i < std::thread::hardware_concurrency(); ++i) {
      threads.emplace_back([&] {
        volatile double x = 1;
        while (compute) x = x * 1.0000001;
      });
    }
    job.transport().rank() == 0 ? receive_all(job.transport(), options) : send_all(job.transport());
    compute = false;
    for (std::thread& thread : threads) thread.join();
  });
}
