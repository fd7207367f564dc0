// Others in place of lost members, met while those who are left go on (net::OnPeerLost::regrow): a thread of its own joins the next generation of the run
// (net/again.h) with them, over connections beside those of now. It is there when all are, on each member at another moment; what the members make of it
// they agree on (regrowth.h).
//
// Who cannot be met is no error of the run: a line says so, and the thread looks again. Meanwhile the others stay as many as they are.
//
// Threads: one at a time. Lifetime: who ends it waits for its threads, which hear of it within a quarter of a second, unless they are connecting.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "shoal/net/job.h"

namespace shoal::nn {

// net::join_again().
using JoinAgain = std::function<std::unique_ptr<net::Job>(const net::Place& before, const std::vector<net::Rank>& lost, const std::stop_token& stop)>;

class Coming {
 public:
  explicit Coming(JoinAgain join) : join_(std::move(join)) {}
  void begin(const net::Place& before, std::vector<net::Rank> lost);  // while it is not under way
  bool under_way() const { return under_way_; }                       // until it is taken
  void tell(const net::Place& before, std::vector<net::Rank> lost);   // who brings others: these are lost meanwhile
  std::unique_ptr<net::Job> take();                                   // nullptr: not all are there

 private:
  const JoinAgain join_;
  bool under_way_ = false;
  std::mutex guard_;
  std::condition_variable_any pause_;
  std::unique_ptr<net::Job> job_;
  std::optional<std::pair<net::Place, std::vector<net::Rank>>> to_tell_;
  bool tells_ = false;
  std::jthread joining_, telling_;  // last: at their ends before what they use
};

}  // namespace shoal::nn
