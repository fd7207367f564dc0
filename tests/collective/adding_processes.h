// Members that are processes and add, sum after sum, until the test tells them to end; meanwhile it kills and stops them and takes their connections.
// Each checks every element of every sum against the contributors that it was told of, and that a sum that was given up left its input alone. One that
// has no sum for 15 s ends with a line that says so.
#pragma once

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <thread>

#include "shoal/net/call.h"
#include "tests/collective/summing.h"
#include "tests/net/forked.h"
#include "tests/net/own_connections.h"

namespace shoal::collective {

struct Adding {
  net::Rank members = 0;
  std::string builder;  // of Summing
  Nanoseconds patience{};  // of each sum
  net::JoinOptions join;
};

// What a member says at its end.
struct AddingEnd {
  std::string fate;              // "ended"; "lost", if it was given up by the others; "wrong", if a sum was; "late", if it was told to end and no sum came
                                 // in three patiences; "" if it says nothing, as it was killed
  std::string why;
  std::uint64_t sums = 0;
  double longest = 0;            // of its calls, seconds
  std::string history;           // "operation:contributors" where these change, a bit a rank; 0: given up by all
  std::uint32_t contributors = 0;  // to the last sum
};

namespace adding {

inline std::int32_t value(net::Rank rank, std::uint64_t operation, std::uint64_t k) {
  return static_cast<std::int32_t>((1u << rank) * 1000u + static_cast<std::uint32_t>(operation) * 17u + k % 101);
}

inline constexpr unsigned kLongest = 15;  // seconds without a sum

inline void stands(int) {
  constexpr char line[] = "no sum was committed for 15 s\n";
  if (write(STDERR_FILENO, line, sizeof line - 1) < 0) _exit(4);
  _exit(3);
}

// A signal's handler: the thread that runs it stands still from now on.
inline void stand_still(int) {
  for (;;) pause();
}

// Does what the test says, a line each: "cut 1>2", "refuse 1>2", "darken 1>2", "lose 1>2", "end"; "freeze" a thread: "io", "caller in a call",
// "caller between calls".
class Obedience {
 public:
  explicit Obedience(const net::Forked& test) : thread_([this, &test] {
    for (std::string order; order != "end";) {
      order = test.line();
      if (order.empty()) _exit(1);  // the test is gone
      if (order != "end") obey(order);
      test.say("done");
    }
    told_to_end_ = true;
  }) {}
  ~Obedience() { thread_.join(); }
  bool told_to_end() const { return told_to_end_; }
  // By the caller's thread, before and after each call.
  void begin_call() { calls_ = true; }
  void end_call() {
    calls_ = false;
    if (!freezes_between_) return;
    frozen_ = true;
    stand_still(0);
  }

 private:
  void obey(const std::string& order) {
    const auto space = order.find(' ');
    const std::string what = order.substr(0, space), which = order.substr(space + 1);
    if (what == "freeze") return freeze(which);
    for (const auto& connection : net::own_connections()) {
      if (connection.name() != which) continue;
      if (what == "cut") net::cut(connection);
      if (what == "refuse") net::refuse(connection);
      if (what == "darken") net::darken(connection);
      if (what == "lose") net::lose(connection, 0.05);
    }
  }
  // Returns when it stands still.
  void freeze(const std::string& role) {
    if (role == "caller between calls") {
      freezes_between_ = true;
      while (!frozen_) std::this_thread::yield();
      return;
    }
    ::signal(SIGUSR2, stand_still);
    while (role == "caller in a call" && !calls_) std::this_thread::yield();
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(entry.path() / "comm"), name);
      const pid_t thread = std::stoi(entry.path().filename().string());
      if (role == "io" ? name == "shoal-io" : thread == getpid()) ::tgkill(getpid(), thread, SIGUSR2);
    }
  }
  std::atomic<bool> told_to_end_{false}, calls_{false}, freezes_between_{false}, frozen_{false};
  std::thread thread_;
};

// The first element says how many were told to end, so that all end after the same sum; the others are what they must be.
inline std::string add(net::Job& job, const net::Forked& test, const Adding& adding) {
  std::string connections;
  for (const auto& connection : net::own_connections()) connections += connection.name() + ' ';
  test.say(connections);
  Obedience obedience(test);
  constexpr std::uint64_t kCounts[] = {1, 1000, 20'000, 300'000};
  net::Transport& transport = job.transport();
  std::vector<net::Rank> all(adding.members);
  std::iota(all.begin(), all.end(), net::Rank{0});
  auto group = *net::call(transport, [&] { return std::make_shared<Survivors>(transport, all, std::uint16_t{9}); });
  Seconds longest{};
  std::ostringstream history;
  std::uint32_t contributors = 0;
  int given_up = 0;  // after each other
  ::signal(SIGALRM, stands);
  const auto bye = [&](const std::string& fate, std::uint64_t sums, const std::string& why) {
    ::alarm(0);
    net::call(transport, [&group] { group.reset(); });
    std::ostringstream line;
    line << fate << '|' << sums << '|' << longest.count() << '|' << contributors << '|' << history.str() << '|' << why;
    return line.str();
  };
  for (std::uint64_t operation = 0;; ++operation) {
    std::vector<std::int32_t> input(kCounts[operation % std::size(kCounts)]);
    for (std::uint64_t k = 1; k < input.size(); ++k) input[k] = value(transport.rank(), operation, k);
    input[0] = obedience.told_to_end();
    const auto kept = input;
    std::vector<std::int32_t> apart(operation % 8 < 4 ? 0 : input.size());
    auto& output = apart.empty() ? input : apart;
    if (contributors != 0 || operation == 0) ::alarm(kLongest);  // since the last sum
    obedience.begin_call();
    const Instant began = steady_now();
    std::vector<net::Rank> told;
    std::string lost;
    try {
      told = sum_together(transport, *group, {adding.builder, adding.members}, input, output, adding.patience,
                          "sum " + std::to_string(operation));
    } catch (const Error& error) {
      if (input != kept) return bye("wrong", operation, "the input of a sum that failed has changed");
      if (error.code() != Code::timeout) lost = error.what();
    }
    longest = std::max(longest, Seconds(steady_now() - began));
    obedience.end_call();
    if (!lost.empty()) return bye("lost", operation, lost);
    std::uint32_t mask = 0;
    for (const net::Rank one : told) mask |= 1u << one;
    if (operation == 0 || mask != contributors) history << operation << ':' << mask << ' ';
    contributors = mask;
    given_up = mask == 0 ? given_up + 1 : 0;
    if (given_up >= 3 && obedience.told_to_end()) return bye("late", operation, "");
    if (mask == 0) continue;
    for (std::uint64_t k = 1; k < output.size(); ++k) {
      std::int32_t sum = 0;
      for (const net::Rank one : told) sum += value(one, operation, k);
      if (output[k] != sum)
        return bye("wrong", operation, "element " + std::to_string(k) + " of sum " + std::to_string(operation));
    }
    if (output[0] > 0) return bye("ended", operation + 1, "");
  }
}

}  // namespace adding

// All that ended did so after the same sums with the same contributors, they among them; no sum was wrong.
inline void expect_one_history(const std::vector<AddingEnd>& ends) {
  const AddingEnd* first = nullptr;
  std::uint32_t ended = 0;
  for (net::Rank rank = 0; rank < ends.size(); ++rank) {
    EXPECT_NE(ends[rank].fate, "wrong") << "rank " << rank << ": " << ends[rank].why;
    if (ends[rank].fate != "ended") continue;
    ended |= 1u << rank;
    if (first == nullptr) first = &ends[rank];
    EXPECT_EQ(ends[rank].history, first->history) << "rank " << rank;
    EXPECT_EQ(ends[rank].sums, first->sums) << "rank " << rank;
  }
  if (first == nullptr) return;
  EXPECT_EQ(first->contributors & ended, ended);  // and one more, perhaps, that had sent all of its own before it was killed
}

class AddingProcesses {
 public:
  explicit AddingProcesses(const Adding& script)
      : team_(script.members, script.join, [&script](net::Job& job, const net::Forked& test) { return adding::add(job, test, script); }) {
    for (net::Rank rank = 0; rank < script.members; ++rank) {
      std::istringstream names(team_.members[rank]->line());
      for (std::string name; names >> name;) rank_of_[name] = rank;
    }
  }

  void signal(net::Rank rank, int number) { team_.members[rank]->signal(number); }
  // One thread of that member stands still for ever.
  void freeze(net::Rank rank, const std::string& role) { order(rank, "freeze " + role); }
  void kill_coordinator() { team_.coordinator.signal(SIGKILL); }
  // "cut" and "refuse" take one end, "darken" and "lose" both. Returns when it is done.
  void strike(const std::string& what, net::Rank a, net::Rank b) {
    const bool both = what == "darken" || what == "lose";
    for (const auto& [name, rank] : rank_of_) {
      const auto arrow = name.find('>');
      const auto other = rank_of_.find(name.substr(arrow + 1) + '>' + name.substr(0, arrow));
      if (other == rank_of_.end() || !((rank == a && other->second == b) || (both && rank == b && other->second == a))) continue;
      order(rank, what + ' ' + name);
    }
  }

  // Tells all members to end but those that were killed. They go on to the next sum that all finish.
  std::vector<AddingEnd> end(const std::vector<bool>& killed) {
    for (net::Rank rank = 0; rank < team_.members.size(); ++rank) {
      if (!killed[rank]) order(rank, "end");
    }
    std::vector<AddingEnd> ends(team_.members.size());
    for (net::Rank rank = 0; rank < team_.members.size(); ++rank) {
      if (killed[rank]) continue;
      std::istringstream line(team_.members[rank]->line());
      std::string sums, longest, contributors;
      AddingEnd& end = ends[rank];
      for (std::string* part : {&end.fate, &sums, &longest, &contributors, &end.history, &end.why}) std::getline(line, *part, '|');
      if (end.fate != "ended" && end.fate != "lost" && end.fate != "wrong" && end.fate != "late") {
        throw std::runtime_error("rank " + std::to_string(rank) + " said " + line.str());
      }
      end.sums = std::stoull(sums);
      end.longest = std::stod(longest);
      end.contributors = static_cast<std::uint32_t>(std::stoul(contributors));
    }
    return ends;
  }

 private:
  void order(net::Rank rank, const std::string& what) {
    team_.members[rank]->say(what);
    if (team_.members[rank]->line() != "done") throw std::runtime_error("rank " + std::to_string(rank) + " does not obey: " + what);
  }

  net::Team team_;
  std::map<std::string, net::Rank> rank_of_;  // by the connection's name at its end
};

}  // namespace shoal::collective
