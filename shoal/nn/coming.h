// Others in place of lost members, met while those who are left go on (net::kRegrow): a thread of its own joins the next generation of the run
// (net/again.h) with them, over connections beside those of now. It is there when all are, on each member at another moment; what the members make of it
// they agree on (session.h).
//
// Who cannot be met is no error of the run: a line says so, and the others stay as many as they are.
//
// Threads: one at a time. Lifetime: who ends it waits for the thread, which hears of it within a quarter of a second, unless it is connecting.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "shoal/net/job.h"

namespace shoal::nn {

// net::join_again().
using JoinAgain = std::function<std::unique_ptr<net::Job>(const net::Place& before, const std::vector<net::Rank>& lost, const std::stop_token& stop)>;

class Coming {
 public:
  explicit Coming(JoinAgain join) : join_(std::move(join)) {}
  void begin(const net::Place& before, std::vector<net::Rank> lost);  // while none is under way
  bool under_way() const { return under_way_; }  // until it is taken, or nobody can be met
  std::unique_ptr<net::Job> take();  // nullptr: not all are there

 private:
  const JoinAgain join_;
  std::atomic<bool> under_way_ = false;
  std::mutex guard_;
  std::unique_ptr<net::Job> job_;
  std::jthread thread_;  // last: at its end before what it uses
};

}  // namespace shoal::nn
