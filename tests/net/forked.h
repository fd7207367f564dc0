// Members that are processes of their own, so that a test can kill and stop them; they and their coordinator report through pipes.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "members.h"
#include "shoal/net/coordinator.h"

namespace shoal::net {

using namespace std::chrono_literals;

// A forked process that speaks in lines with the test. The test itself never starts a thread: a fork beside one would
// hand the child whatever lock that thread held, locked for ever.
class Forked {
 public:
  explicit Forked(const std::function<void(const Forked&)>& body) {
    int up[2], down[2];
    if (pipe(up) != 0 || pipe(down) != 0) throw std::runtime_error("pipe");
    pid_ = fork();
    in_ = pid_ == 0 ? down[0] : up[0];
    out_ = pid_ == 0 ? up[1] : down[1];
    close(pid_ == 0 ? down[1] : up[1]);
    close(pid_ == 0 ? up[0] : down[0]);
    if (pid_ != 0) return;
    body(*this);
    _exit(0);
  }
  ~Forked() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(in_);
    close(out_);
  }
  void signal(int number) const { kill(pid_, number); }
  // The next line that the other side said.
  std::string line() const {
    std::string text;
    for (char c; read(in_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  void say(const std::string& text) const {
    const std::string whole = text + "\n";
    if (write(out_, whole.data(), whole.size()) < 0) throw std::runtime_error("write");
  }

 private:
  pid_t pid_ = 0;
  int in_ = -1, out_ = -1;
};

inline JoinOptions quick_health() {
  JoinOptions options = quick();
  options.heartbeat = 50ms;
  options.suspect = 200ms;
  options.dead = 500ms;
  return options;
}

struct Team {
  // Every member joins, runs `body`, which may speak with the test meanwhile, and says what that returns.
  Team(Rank size, const JoinOptions& options, const std::function<std::string(Job&)>& body)
      : Team(size, options, [&body](Job& job, const Forked&) { return body(job); }) {}
  Team(Rank size, const JoinOptions& options, const std::function<std::string(Job&, const Forked& test)>& body)
      : coordinator([](const Forked& test) {
          const Coordinator open("secret", "127.0.0.1:0");
          test.say(open.address());
          test.line();
        }) {
    const std::string address = coordinator.line();
    for (Rank rank = 0; rank < size; ++rank) {
      members.push_back(std::make_unique<Forked>([&, rank](const Forked& test) {
        try {
          CoordinatorClient client("secret", address, 20s);
          auto job = join_tcp(place_of(rank, size), client, "t/", "secret", options);
          test.say("joined");
          test.say(body(*job, test));
        } catch (const Error& error) {
          test.say(std::string("threw ") + error.what());
        }
      }));
    }
    for (auto& member : members) EXPECT_EQ(member->line(), "joined");
  }
  Forked coordinator;
  std::vector<std::unique_ptr<Forked>> members;
};

}  // namespace shoal::net
