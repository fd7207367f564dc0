// Several members in one process, each joined by a thread of its own over real sockets on 127.0.0.1.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/tcp.h"

namespace shoal::net {

// A board in memory: what a coordinator is, without the network.
class Board final : public Rendezvous {
 public:
  void put(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    board_[key] = value;
    changed_.notify_all();
  }
  std::string get(const std::string& key, Nanoseconds patience) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return board_.contains(key); })) throw Error(Code::timeout, "no " + key);
    return board_[key];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> board_;
};

inline JoinOptions quick() {
  JoinOptions options;
  options.patience = std::chrono::seconds(20);
  return options;
}

// Runs `body(rank)` on a thread a member; what it throws is a failure of the test.
inline void each(Rank size, const std::function<void(Rank)>& body) {
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) {
    threads.emplace_back([&body, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline Place place_of(Rank rank, Rank size, const std::string& job = "test") {
  Place place;
  place.rank = rank;
  place.size = size;
  place.job = job;
  return place;
}
inline Place place_at(const Coordinator& coordinator, Rank rank, Rank size) {
  Place place = place_of(rank, size, "shoal");
  place.coordinator = coordinator.address();
  return place;
}

inline std::vector<std::unique_ptr<Job>> join_all(Rank size, const JoinOptions& options = quick(), const std::string& secret = "s") {
  Board board;
  std::vector<std::unique_ptr<Job>> jobs(size);
  each(size, [&](Rank rank) { jobs[rank] = join_tcp(place_of(rank, size), board, "t/", secret, options); });
  return jobs;
}

// What a join ends with: "joined", or the error's code and line.
inline std::string why_not(Rank rank, Rank size, Rendezvous& board, const JoinOptions& options, const std::string& secret = "s") {
  try {
    join_tcp(place_of(rank, size), board, "t/", secret, options);
    return "joined";
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
}

inline bool has_ipv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 own{};
  own.sin6_family = AF_INET6;
  own.sin6_addr = in6addr_loopback;
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&own), sizeof own) == 0;
  if (fd >= 0) close(fd);
  return bound;
}

inline void leave_all(std::vector<std::unique_ptr<Job>>& jobs) {
  each(static_cast<Rank>(jobs.size()), [&](Rank rank) { jobs[rank].reset(); });
}

// A count of things to happen, driven by its waiter.
class Countdown {
 public:
  explicit Countdown(int count) : left_(count) {}
  Done done() {
    return [this](const Failure& failure) {
      if (failure) failures_.push_back(failure);
      --left_;
    };
  }
  bool wait(Transport& transport, Nanoseconds patience = std::chrono::seconds(20)) {
    return transport.drive([this] { return left_ == 0; }, steady_now() + patience);
  }
  const std::vector<Failure>& failures() const { return failures_; }  // after wait()

 private:
  std::atomic<int> left_;
  std::vector<Failure> failures_;  // written on the loop only
};

}  // namespace shoal::net
