// A process group whose members live in one thread on a scripted network: everything is decided by the seed.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "shoal/net/inproc.h"
#include "tests/nn/calls.h"

namespace shoal::nn {

using namespace std::chrono_literals;

class ScriptedJob final : public net::Job {
 public:
  ScriptedJob(net::Transport& transport) : transport_(transport), members_(transport.size()) {
    place_.rank = transport.rank();
    place_.size = transport.size();
  }
  const net::Place& place() const override { return place_; }
  const std::vector<net::MemberInfo>& members() const override { return members_; }
  net::Transport& transport() override {
    if (asked) std::exchange(asked, nullptr)();
    return transport_;
  }
  std::function<void()> asked;  // runs once, inside the next call that wants the transport

 private:
  net::Transport& transport_;
  net::Place place_;
  std::vector<net::MemberInfo> members_;
};

class ScriptedMembers {
 public:
  explicit ScriptedMembers(net::Rank size, const net::ScriptedNetwork& network = {}, const Group::Settings& settings = {})
      : job(size, network) {
    for (net::Rank rank = 0; rank < size; ++rank) {
      groups_.push_back(std::make_unique<Group>(std::make_unique<ScriptedJob>(job.member(rank)), settings));
    }
  }
  Group& operator[](net::Rank rank) { return *groups_[rank]; }
  net::Rank size() const { return static_cast<net::Rank>(groups_.size()); }
  void leave(net::Rank rank) { groups_[rank].reset(); }
  void kill(net::Rank rank) {
    job.kill(rank);
    forget(rank);
  }
  void freeze(net::Rank rank) {
    job.freeze(rank);
    forget(rank);
  }

  // The outcome's place is fixed; it outlives the group.
  Outcome& start(net::Rank rank, Collect what, Nanoseconds patience = 60s) {
    Outcome& outcome = outcomes_.emplace_back();
    groups_[rank]->start(std::move(what), patience, outcome.done());
    return outcome;
  }
  Outcome& send(net::Rank from, net::Rank to, std::uint32_t tag, std::vector<std::int32_t>& values, Nanoseconds patience = 60s) {
    Outcome& outcome = outcomes_.emplace_back();
    groups_[from]->send(to, tag, bytes_of(values), patience, outcome.done());
    return outcome;
  }
  Outcome& receive(net::Rank at, std::optional<net::Rank> from, std::uint32_t tag, std::vector<std::int32_t>& values,
                   Nanoseconds patience = 60s) {
    Outcome& outcome = outcomes_.emplace_back();
    groups_[at]->receive(from, tag, bytes_of(values), patience, outcome.received());
    return outcome;
  }
  Outcome& monitored_barrier(net::Rank rank, Nanoseconds patience = 60s, bool all_missing = true) {
    Outcome& outcome = outcomes_.emplace_back();
    groups_[rank]->monitored_barrier(patience, all_missing, outcome.done());
    return outcome;
  }
  // Until everything has ended, and on until nothing is left to happen; the lines of all outcomes in the order of their making.
  std::vector<std::string> run() {
    job.run([this] { return std::all_of(outcomes_.begin(), outcomes_.end(), [](const Outcome& o) { return o.ended > 0; }); });
    took_ = job.now() - Instant{};
    job.run();
    std::vector<std::string> lines;
    for (const Outcome& outcome : outcomes_) lines.push_back(outcome.line());
    return lines;
  }
  Nanoseconds took() const { return took_; }  // from the beginning to the end of everything, at the last run()
  void pass(Nanoseconds time) {
    bool passed = false;
    job.at(job.now() - Instant{} + time, [&] { passed = true; });
    job.run([&] { return passed; });
  }

 private:
  std::deque<Outcome> outcomes_;  // outlives the groups, which end what is open
  Nanoseconds took_{};

 public:
  net::InprocJob job;             // outlives the groups too

 private:
  // Of a process that acts no more no destructor runs: its memory stays, where the leak checker can see it.
  void forget(net::Rank rank) {
    static auto& gone = *new std::vector<Group*>;
    gone.push_back(groups_[rank].release());
  }

  std::vector<std::unique_ptr<Group>> groups_;
};

inline std::vector<std::int32_t> counting(std::size_t size, std::int32_t from = 0) {
  std::vector<std::int32_t> values(size);
  std::iota(values.begin(), values.end(), from);
  return values;
}

}  // namespace shoal::nn
