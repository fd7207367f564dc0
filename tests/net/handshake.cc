// Both ends of a connection agree on whether it exists, and a coroutine's exception does not vanish.
#include <arpa/inet.h>

#include <sstream>

#include "members.h"
#include "shoal/net/sockets.h"
#include "shoal/net/spawn.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

// Stands before a listening port. Of the first connection it keeps back the listener's last word ("ready", the 32 bytes after
// the first 64) and closes both ends: a dialer that ran too late to read it. The others pass.
class LateOnce {
 public:
  explicit LateOnce(const std::string& target) : listening_(socket(AF_INET, SOCK_STREAM, 0)) {
    to_.sin_family = AF_INET;
    to_.sin_port = htons(static_cast<std::uint16_t>(std::stoi(target.substr(target.rfind(':') + 1))));
    to_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in at = to_;
    at.sin_port = 0;
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(listening_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(listen(listening_, 8), 0);
    EXPECT_EQ(getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    accepting_ = std::thread([this] {
      for (int dialer; (dialer = accept(listening_, nullptr, nullptr)) >= 0;) serve(dialer);
    });
  }
  ~LateOnce() {
    shutdown(listening_, SHUT_RDWR);
    accepting_.join();
    for (std::thread& pipe : pipes_) pipe.join();
    for (const int end : ends_) close(end);
    close(listening_);
  }
  const std::string& address() const { return address_; }
  int connections() const { return connections_; }

 private:
  void serve(int dialer) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(listener, reinterpret_cast<sockaddr*>(&to_), sizeof to_), 0);
    ends_.insert(ends_.end(), {dialer, listener});
    const bool late = connections_++ == 0;
    pipes_.emplace_back([=] { pass(dialer, listener, SIZE_MAX); });
    pipes_.emplace_back([=] { pass(listener, dialer, late ? 64 : SIZE_MAX); });
  }
  // Until an end, or until more than `most` bytes have come.
  static void pass(int from, int to, std::size_t most) {
    char bytes[4096];
    std::size_t passed = 0;
    for (ssize_t got; (got = recv(from, bytes, sizeof bytes, 0)) > 0;) {
      const std::size_t now = std::min(static_cast<std::size_t>(got), most - passed);
      if (send(to, bytes, now, MSG_NOSIGNAL) < 0) break;
      passed += now;
      if (now < static_cast<std::size_t>(got)) break;
    }
    shutdown(from, SHUT_RDWR);
    shutdown(to, SHUT_RDWR);
  }

  int listening_;
  sockaddr_in to_{};
  std::string address_;
  std::atomic<int> connections_{0};
  std::thread accepting_;
  std::vector<std::thread> pipes_;
  std::vector<int> ends_;
};

// Shows rank 0 only behind a LateOnce.
class Behind final : public Rendezvous {
 public:
  void put(const std::string& key, const std::string& value) override {
    std::istringstream in(value);
    std::string shown;
    for (std::string line; std::getline(in, line);) {
      if (!key.ends_with("/0") || line.rfind("at ", 0) != 0) {
        shown += line + "\n";
      } else if (line.rfind("at 127.0.0.1:", 0) == 0) {
        late = std::make_unique<LateOnce>(line.substr(3));
        shown += "at " + late->address() + "\n";
      }
    }
    board_.put(key, shown);
  }
  std::string get(const std::string& key, Nanoseconds patience) override { return board_.get(key, patience); }

  std::unique_ptr<LateOnce> late;

 private:
  Board board_;
};

TEST(Handshake, a_dialer_that_was_too_late_dials_again_and_nobody_is_lost) {
  Behind board;
  std::vector<std::unique_ptr<Job>> jobs(2);
  each(2, [&](Rank rank) { jobs[rank] = join_tcp(place_of(rank, 2), board, "t/", "s", quick()); });
  ASSERT_TRUE(jobs[0] && jobs[1]);
  EXPECT_EQ(board.late->connections(), 3);  // control, control again, bulk
  std::byte out{7}, in{};
  Countdown done(2);
  Transport& a = jobs[0]->transport();
  a.post([&] {
    a.send(1, {1, 0}, {}, std::span(&out, 1), done.done());
    jobs[1]->transport().receive(0, {1, 0}, {}, std::span(&in, 1), done.done());
  });
  EXPECT_TRUE(done.wait(a));
  EXPECT_EQ(in, out);
  leave_all(jobs);
}

asio::awaitable<void> throws() {
  throw Error(Code::internal, "a fault inside");
  co_return;
}

TEST(HandshakeDeathTest, what_escapes_a_coroutine_ends_the_process_with_its_message) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Loop::shared().post([] { spawn(throws()); });
        Loop::shared().drive([] { return false; }, steady_now() + 20s);
      },
      testing::ExitedWithCode(1), "this member ends, its network loop failed: a fault inside");
}

}  // namespace
}  // namespace shoal::net
