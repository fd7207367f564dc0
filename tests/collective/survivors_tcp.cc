// Members that are processes add over real sockets while one of them is killed, at moments swept over 0 to 110 % of the operation: the survivors' sums
// are those of one set of contributors, exactly. SHOAL_KILLS sets how many (nightly: 1000); SHOAL_KILL_BYTES how much they add.
#include <algorithm>
#include <sstream>
#include <thread>

#include "shoal/net/call.h"
#include "tests/collective/surviving_members.h"
#include "tests/from_environment.h"
#include "tests/net/forked.h"

namespace shoal::collective {
namespace {

using net::Forked;
using net::Rank;
using namespace std::chrono_literals;

constexpr Rank kStruck = 4;

// Kills this process when `after` has passed since arm().
class Fuse {
 public:
  void arm(Nanoseconds after, int signal) {
    thread_ = std::thread([until = steady_now() + after, signal] {
      while (steady_now() < until) std::this_thread::yield();
      kill(getpid(), signal);
    });
  }
  ~Fuse() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

struct Plan {
  std::uint64_t count = 0;  // int32 elements
  bool in_place = false;
  std::string builder;
  Rank victim = 0;
  double moment = 0;        // of the time that an undisturbed operation takes
  int signal = SIGKILL;
  Nanoseconds patience = 30s;
};

std::int32_t value(Rank rank, int operation, std::uint64_t k) {
  return static_cast<std::int32_t>((1u << rank) * 1000u + static_cast<std::uint32_t>(operation) * 17u + k % 101);
}

// One member's sums: two undisturbed, one in which the victim ends, two more. A line for the test: "contributors|contributors.. ms" or what is wrong.
std::string add(net::Job& job, const Plan& plan) {
  constexpr int kDisturbed = 2, kSums = 5;
  net::Transport& transport = job.transport();
  const Rank rank = transport.rank();
  const LinkModel& link = link_for(plan.builder, kStruck);
  auto group = *net::call(transport, [&] {
    return std::make_shared<SurvivingGroup>(transport, std::vector<Rank>{0, 1, 2, 3}, std::uint16_t{9}, SurvivingGroup::Options{plan.builder, link});
  });
  std::ostringstream told;
  Nanoseconds usual{}, took{}, next{};
  Fuse fuse;
  for (int operation = 0; operation < kSums; ++operation) {
    std::vector<std::int32_t> input(plan.count), apart(plan.in_place ? 0 : plan.count);
    for (std::uint64_t k = 0; k < plan.count; ++k) input[k] = value(rank, operation, k);
    auto& output = plan.in_place ? input : apart;
    Addition addition;
    addition.type = DType::i32;
    addition.count = plan.count;
    addition.buffers = {reinterpret_cast<const std::byte*>(input.data()), reinterpret_cast<std::byte*>(output.data())};
    addition.patience = plan.patience;
    addition.label = "sum " + std::to_string(operation);
    if (operation == kDisturbed && rank == plan.victim) {
      fuse.arm(std::chrono::duration_cast<Nanoseconds>(usual * plan.moment), plan.signal);
    }
    const Instant began = steady_now();
    const auto contributors = group->sum(addition);
    const Nanoseconds time = steady_now() - began;
    if (operation < kDisturbed) usual = time;
    if (operation == kDisturbed) took = time;
    if (operation == kDisturbed + 1) next = time;
    for (std::uint64_t k = 0; k < plan.count; ++k) {
      std::int32_t sum = 0;
      for (const auto& one : contributors) sum += value(one.rank, operation, k);
      if (output[k] != sum) return "WRONG sum " + std::to_string(operation) + " at " + std::to_string(k);
    }
    for (const auto& one : contributors) told << one.rank;
    told << '|';
    if (operation == kDisturbed && rank == plan.victim) std::this_thread::sleep_for(1h);  // the fuse burns
  }
  told << ' ' << std::chrono::duration<double, std::milli>(usual).count() << ' ' << std::chrono::duration<double, std::milli>(took).count() << ' '
       << std::chrono::duration<double, std::milli>(next).count();
  net::call(transport, [&group] { group.reset(); });
  return told.str();
}

struct Figures {
  std::vector<double> usual, disturbed, next;  // milliseconds, of the slowest survivor
  int without = 0, with = 0;                   // the disturbed sum was committed without the victim's contribution, with it
};

void expect_one_outcome(const Plan& plan, const net::JoinOptions& options, Figures& figures) {
  SCOPED_TRACE(plan.builder + ", rank " + std::to_string(plan.victim) + " at " + std::to_string(plan.moment) + (plan.in_place ? ", in place" : ""));
  net::Team team(kStruck, options, [&plan](net::Job& job) { return add(job, plan); });
  std::string first;
  double usual = 0, disturbed = 0, next = 0;
  for (Rank rank = 0; rank < kStruck; ++rank) {
    if (rank == plan.victim) continue;
    std::istringstream line(team.members[rank]->line());
    std::string sets;
    double times[3] = {};
    line >> sets >> times[0] >> times[1] >> times[2];
    ASSERT_TRUE(line) << "rank " << rank << " said: " << line.str();
    if (first.empty()) first = sets;
    ASSERT_EQ(sets, first) << "rank " << rank << " has other contributors";
    usual = std::max(usual, times[0]);
    disturbed = std::max(disturbed, times[1]);
    next = std::max(next, times[2]);
  }
  std::string left = "0123";
  std::erase(left, static_cast<char>('0' + plan.victim));
  EXPECT_EQ(first.substr(0, 10), "0123|0123|");
  EXPECT_EQ(first.substr(first.size() - 4, 3), left);
  (first.substr(10, 4) == "0123" ? figures.with : figures.without) += 1;
  figures.usual.push_back(usual);
  figures.disturbed.push_back(disturbed);
  figures.next.push_back(next);
}

std::string show(std::vector<double> times) {
  std::ranges::sort(times);
  std::ostringstream text;
  text << "median " << times[times.size() / 2] << " ms, worst " << times.back() << " ms";
  return text.str();
}

TEST(SurvivorsTcp, agree_when_one_is_killed_at_any_moment) {
  const std::uint64_t kills = from_environment("SHOAL_KILLS", 50);
  net::JoinOptions options = net::quick();
  options.on_peer_lost = net::OnPeerLost::shrink;
  const std::vector<std::string> builders{"ring", "trees", "direct", "chain", "halving_doubling"};
  Figures figures;
  for (std::uint64_t i = 0; i < kills; ++i) {
    Plan plan;
    plan.count = from_environment("SHOAL_KILL_BYTES", 4 << 20) / sizeof(std::int32_t);
    plan.builder = builders[i % builders.size()];
    plan.in_place = i / 5 % 2 == 0;
    plan.victim = static_cast<Rank>(i / 10 % kStruck);
    plan.moment = 1.1 * static_cast<double>(i) / static_cast<double>(kills);
    expect_one_outcome(plan, options, figures);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(figures.without, 0) << "nobody was killed in the middle";
  std::printf("%d without, %d with the victim's contribution\nundisturbed: %s\ndisturbed:   %s\nthe next:    %s\n", figures.without, figures.with,
              show(figures.usual).c_str(), show(figures.disturbed).c_str(), show(figures.next).c_str());
}

// A stopped process closes nothing: its silence is found, and the same call goes on without it. SHOAL_STOPS sets how many.
TEST(SurvivorsTcp, agree_when_one_stands_still) {
  net::JoinOptions options = net::quick_health();
  options.on_peer_lost = net::OnPeerLost::shrink;
  const std::uint64_t stops = from_environment("SHOAL_STOPS", 4);
  Figures figures;
  for (std::uint64_t i = 0; i < stops; ++i) {
    Plan plan;
    plan.count = 1 << 20;
    plan.builder = i % 2 == 0 ? "ring" : "direct";
    plan.in_place = i % 4 < 2;
    plan.victim = static_cast<Rank>(i % kStruck);
    plan.moment = static_cast<double>(i) / static_cast<double>(stops);
    plan.signal = SIGSTOP;
    expect_one_outcome(plan, options, figures);
    if (HasFatalFailure()) return;
  }
  std::printf("%d without, %d with the victim's contribution\ndisturbed: %s\n", figures.without, figures.with, show(figures.disturbed).c_str());
}

}  // namespace
}  // namespace shoal::collective
