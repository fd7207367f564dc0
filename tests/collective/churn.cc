// Members that are processes add over real sockets while faults strike them at random moments, for long. Goal: no sum is ever wrong, survivors never
// differ, no call lasts longer than its deadline and a little, and nobody is without a sum for 15 s. Nightly: SHOAL_CHURN_SECONDS=600, SHOAL_FAULTS=20;
// weekly 28800 s; SHOAL_FIRST_SEED draws other moments, and is printed.
#include <iostream>
#include <random>

#include "tests/collective/adding_processes.h"
#include "tests/from_environment.h"

namespace shoal::collective {
namespace {

using net::Rank;
using namespace std::chrono_literals;

constexpr const char* kBuilders[] = {"ring", "direct", "chain", "halving_doubling", ""};

net::JoinOptions going_on(net::JoinOptions options) {
  options.on_peer_lost = net::OnPeerLost::shrink;
  return options;
}

// Members that were struck by nothing and yet given up: a busy machine may keep a member from being heard.
std::uint64_t given_up_unstruck(const std::vector<AddingEnd>& ends, const std::vector<bool>& struck) {
  std::uint64_t members = 0;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) members += !struck[rank] && ends[rank].fate != "ended";
  return members;
}

// One group of eight, and faults every so often until few are left.
class Churn {
 public:
  static constexpr Rank kMembers = 8;

  Churn(const Adding& script, std::mt19937& random) : processes_(script), random_(random), gone_(kMembers), killed_(kMembers) {}

  bool few() const { return std::ranges::count(gone_, false) < 4; }  // a fault may take two

  void strike() {
    const Rank a = any(), b = any(a);
    const auto kind = random_() % 8;
    struck_ += " " + std::to_string(kind) + ":" + std::to_string(a) + "," + std::to_string(b);
    switch (kind) {
      case 0: kill(a); break;
      case 1: kill(a); kill(b); break;
      case 2:  // twice anybody's patience: when it wakes up it learns that it was given up
        stop(a, 1s);
        gone_[a] = true;
        break;
      case 3: stop(a, 50ms); break;  // nobody is lost
      case 4: part("cut", a, b); break;
      case 5: part("refuse", a, b); break;
      case 6:  // of two that no longer hear each other the higher rank goes
        processes_.strike("darken", a, b);
        std::this_thread::sleep_for(1s);  // members of one host may add on through their memory until heartbeats are missed
        gone_[std::max(a, b)] = true;
        break;
      case 7:  // 5 % of all packets: TCP makes delays of them, long ones if it waits for its timer twice; then it is as if they did not hear each other
        processes_.strike("lose", a, b);
        gone_[std::max(a, b)] = true;
        break;
    }
  }

  const std::vector<bool>& struck() const { return gone_; }
  std::vector<AddingEnd> end() {
    SCOPED_TRACE("faults" + struck_);
    auto ends = processes_.end(killed_);
    expect_one_history(ends);
    EXPECT_TRUE(std::ranges::count(ends, "ended", &AddingEnd::fate) > 0) << "nobody is left";
    for (const auto& [one, other] : parted_) EXPECT_FALSE(ends[one].fate == "ended" && ends[other].fate == "ended") << one << " and " << other;
    return ends;
  }

 private:
  Rank any(Rank but = kMembers) {
    Rank rank;
    do rank = static_cast<Rank>(random_() % kMembers); while (gone_[rank] || rank == but);
    return rank;
  }
  void kill(Rank rank) {
    processes_.signal(rank, SIGKILL);
    gone_[rank] = killed_[rank] = true;
  }
  // Both ends take each other for dead, and say so.
  void part(const std::string& how, Rank a, Rank b) {
    processes_.strike(how, a, b);
    gone_[a] = gone_[b] = true;
    parted_.emplace_back(a, b);
  }
  void stop(Rank rank, Nanoseconds length) {
    processes_.signal(rank, SIGSTOP);
    std::this_thread::sleep_for(length);
    processes_.signal(rank, SIGCONT);
  }

  AddingProcesses processes_;
  std::mt19937& random_;
  std::vector<bool> gone_, killed_;
  std::vector<std::pair<Rank, Rank>> parted_;
  std::string struck_;                       // kind:a,b as in strike()
};

TEST(Churn, every_sum_is_right_while_members_are_killed_stopped_and_cut_off) {
  const auto until = steady_now() + std::chrono::seconds(from_environment("SHOAL_CHURN_SECONDS", 10));
  const std::uint64_t seed = from_environment("SHOAL_FIRST_SEED", 1);
  std::cout << "SHOAL_FIRST_SEED=" << seed << std::endl;
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  std::uint64_t groups = 0, faults = 0, sums = 0, unstruck = 0;
  double longest = 0;
  for (; steady_now() < until && !testing::Test::HasFailure(); ++groups) {
    Adding script{Churn::kMembers, kBuilders[groups % std::size(kBuilders)], 5s, going_on(net::quick_health())};
    script.join.shared_memory = groups % 2 == 1;
    Churn churn(script, random);
    while (!churn.few() && steady_now() < until) {
      std::this_thread::sleep_for(1s + std::chrono::microseconds(random() % 10'000));  // at any moment of a sum
      churn.strike();
      ++faults;
    }
    const auto ends = churn.end();
    unstruck += given_up_unstruck(ends, churn.struck());
    std::uint64_t most = 0;
    for (const auto& end : ends) most = std::max(most, end.sums), longest = std::max(longest, end.longest);
    sums += most;
  }
  std::cout << sums << " sums in " << groups << " groups of " << Churn::kMembers << ", " << faults << " faults, " << unstruck
            << " members given up that nothing had struck, the longest call " << longest << " s\n";
}

struct Late {
  double longest = 0;          // call of those who are left, and of one that is only cut off; seconds
  std::uint64_t unstruck = 0;
};

// Four members and one fault in the middle of their sums.
Late strike_once(const std::string& fault, Rank victim, const Adding& script, std::mt19937& random) {
  AddingProcesses processes(script);
  std::this_thread::sleep_for(200ms + std::chrono::microseconds(random() % 20'000));
  std::vector<bool> silenced(script.members);
  silenced[victim] = fault != "black hole";
  if (fault == "stopped") processes.signal(victim, SIGSTOP);
  if (fault == "rank 0 and the meeting place killed") {
    processes.signal(victim, SIGKILL);
    processes.kill_coordinator();
  }
  for (Rank other = 0; other < script.members && fault == "black hole"; ++other) {
    if (other != victim) processes.strike("darken", victim, other);
  }
  const auto ends = processes.end(silenced);
  expect_one_history(ends);
  EXPECT_TRUE(std::ranges::count(ends, "ended", &AddingEnd::fate) > 0) << "nobody is left";
  EXPECT_EQ(ends[victim].fate, silenced[victim] ? "" : "lost");
  std::vector<bool> struck(script.members);
  struck[victim] = true;
  Late late{0, given_up_unstruck(ends, struck)};
  for (const auto& end : ends) late.longest = std::max(late.longest, end.longest);
  return late;
}

// The figures are for people: how late a call may be on a machine that is busy with other things is not for a test to say.
TEST(Churn, every_call_of_survivors_returns) {
  struct Settings {
    const char* name;
    Nanoseconds patience;
    net::JoinOptions join;
  };
  net::JoinOptions as_training = net::quick();
  as_training.dead = 3500ms;
  const Settings all[] = {{"silence of 0.5 s", 1s, net::quick_health()}, {"as in training", 5s, as_training}};
  const std::uint64_t faults = from_environment("SHOAL_FAULTS", 2);
  const std::uint64_t seed = from_environment("SHOAL_FIRST_SEED", 1);
  std::cout << "SHOAL_FIRST_SEED=" << seed << std::endl;
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  for (const std::string fault : {"black hole", "stopped", "rank 0 and the meeting place killed"}) {
    for (const auto& settings : all) {
      if (&settings != all && faults <= 2 && fault != "rank 0 and the meeting place killed") continue;  // 4 s each
      double longest = 0;
      std::uint64_t late = 0, unstruck = 0;
      for (std::uint64_t i = 0; i < faults && !testing::Test::HasFailure(); ++i) {
        Adding script{4, kBuilders[i % std::size(kBuilders)], settings.patience, going_on(settings.join)};
        script.join.shared_memory = fault != "black hole" && i % 4 == 3;  // memory has no holes
        const Rank victim = fault.starts_with("rank 0") ? 0 : static_cast<Rank>(i % script.members);
        const Late once = strike_once(fault, victim, script, random);
        longest = std::max(longest, once.longest);
        unstruck += once.unstruck;
        if (once.longest > Seconds(settings.patience).count() + 0.5) ++late;
      }
      std::cout << fault << ", " << settings.name << ": " << faults << ", the longest call " << longest << " s, " << late
                << " later than 0.5 s after their deadline of " << Seconds(settings.patience).count() << " s, " << unstruck
                << " members given up that nothing had struck\n";
    }
  }
}

}  // namespace
}  // namespace shoal::collective
