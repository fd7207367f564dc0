// Members that are processes, four to eight, add over real sockets while one of them is killed, at moments swept over 0 to 110 % of the operation, and
// over its last tenth: the survivors' sums are those of one set of contributors, exactly. SHOAL_KILLS sets how many (nightly: 1000 of either);
// SHOAL_KILL_BYTES how much they add.
#include <algorithm>
#include <numeric>
#include <sstream>
#include <thread>

#include "shoal/net/call.h"
#include "tests/collective/summing.h"
#include "tests/from_environment.h"
#include "tests/net/forked.h"

namespace shoal::collective {
namespace {

using net::Forked;
using net::Rank;
using namespace std::chrono_literals;

// What is promised of kills: survivors know in half a second, and have the next sum a second and a reduction after the kill. A machine that is busy with
// other things takes its time: only what is later than that by `kBusy` fails. The figures are printed.
constexpr double kKnown = 0.5, kCommitted = 1.0, kBusy = 10.0;  // seconds

double on_clock(Instant at) { return Seconds(at.time_since_epoch()).count(); }  // one clock for all processes of a machine

// Kills this process when `after` has passed since arm(), and tells the test when that was.
class Fuse {
 public:
  void arm(Nanoseconds after, int signal, const Forked& test) {
    thread_ = std::thread([until = steady_now() + after, signal, &test] {
      while (steady_now() < until) std::this_thread::yield();
      test.say(std::to_string(on_clock(steady_now())));
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
  Rank members = 4;
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

constexpr int kDisturbed = 2, kSums = 5;

// One member's sums: two undisturbed, one in which the victim ends, two more. A line for the test: whose each sum is, "0123|012|..", when the loss was
// known, how long the last undisturbed sum took, and the ends of those after it; or what is wrong.
std::string add(net::Job& job, const Plan& plan, const Forked& test) {
  net::Transport& transport = job.transport();
  const Rank rank = transport.rank();
  std::vector<Rank> all(plan.members);
  std::iota(all.begin(), all.end(), Rank{0});
  std::atomic<double> known = 0;
  auto group = *net::call(transport, [&] {
    transport.on_lost([&known](Rank, const net::Failure&) { known = on_clock(steady_now()); });
    return std::make_shared<Survivors>(transport, all, std::uint16_t{9});
  });
  std::ostringstream told, ends;
  ends.precision(17);
  Nanoseconds usual{};
  Fuse fuse;
  for (int operation = 0; operation < kSums; ++operation) {
    std::vector<std::int32_t> input(plan.count), apart(plan.in_place ? 0 : plan.count);
    for (std::uint64_t k = 0; k < plan.count; ++k) input[k] = value(rank, operation, k);
    auto& output = plan.in_place ? input : apart;
    if (operation == kDisturbed && rank == plan.victim) {
      fuse.arm(std::chrono::duration_cast<Nanoseconds>(usual * plan.moment), plan.signal, test);
    }
    const Instant began = steady_now();
    const auto contributors = sum_together(transport, *group, {plan.builder, plan.members}, input, output, plan.patience,
                                           "sum " + std::to_string(operation));
    const Instant ended = steady_now();
    if (operation < kDisturbed) usual = ended - began;
    if (operation >= kDisturbed) ends << ' ' << on_clock(ended);
    for (std::uint64_t k = 0; k < plan.count; ++k) {
      std::int32_t sum = 0;
      for (const Rank one : contributors) sum += value(one, operation, k);
      if (output[k] != sum) return "WRONG sum " + std::to_string(operation) + " at " + std::to_string(k);
      if (!plan.in_place && input[k] != value(rank, operation, k)) return "WRITTEN input " + std::to_string(operation) + " at " + std::to_string(k);
    }
    for (const Rank one : contributors) told << one;
    told << '|';
    if (operation == kDisturbed && rank == plan.victim) std::this_thread::sleep_for(1h);  // the fuse burns
  }
  net::call(transport, [&group] { group.reset(); });
  told.precision(17);
  told << ' ' << known << ' ' << Seconds(usual).count() << ends.str();
  return told.str();
}

struct Figures {
  std::vector<double> usual, known, committed;  // seconds, of the slowest survivor; the last two since the kill
  int without = 0, with = 0;                    // the disturbed sum was committed without the victim's contribution, with it
};

void expect_one_outcome(const Plan& plan, const net::JoinOptions& options, Figures& figures) {
  SCOPED_TRACE(std::to_string(plan.members) + " members, " + plan.builder + ", rank " + std::to_string(plan.victim) + " at " +
               std::to_string(plan.moment) +
               (plan.in_place ? ", in place" : ""));
  net::Team team(plan.members, options, [&plan](net::Job& job, const Forked& test) { return add(job, plan, test); });
  const double killed = std::stod(team.members[plan.victim]->line());
  std::string first;
  double usual = 0, known = 0, committed = 0;
  for (Rank rank = 0; rank < plan.members; ++rank) {
    if (rank == plan.victim) continue;
    std::istringstream line(team.members[rank]->line());
    std::string sets;
    double knew = 0, took = 0, ends[kSums - kDisturbed] = {};
    line >> sets >> knew >> took;
    for (double& end : ends) line >> end;
    ASSERT_TRUE(line) << "rank " << rank << " said: " << line.str();
    if (first.empty()) first = sets;
    ASSERT_EQ(sets, first) << "rank " << rank << " has other contributors";
    usual = std::max(usual, took);
    known = std::max(known, knew - killed);
    committed = std::max(committed, *std::ranges::find_if(ends, [&](double end) { return end > killed || &end == std::end(ends) - 1; }) - killed);
  }
  const std::string all = std::string("01234567").substr(0, plan.members) + '|';
  std::string left = all;
  std::erase(left, static_cast<char>('0' + plan.victim));
  const bool with = first == all + all + all + left + left;
  EXPECT_EQ(first, all + all + (with ? all : left) + left + left);
  (with ? figures.with : figures.without) += 1;
  figures.usual.push_back(usual);
  figures.known.push_back(known);
  figures.committed.push_back(committed);
  if (plan.signal != SIGKILL) return;
  EXPECT_LE(known, kKnown + kBusy);
  EXPECT_LE(committed, kCommitted + usual + kBusy);
}

std::string show(std::vector<double> times) {
  std::ranges::sort(times);
  std::ostringstream text;
  text << "median " << 1e3 * times[times.size() / 2] << " ms, worst " << 1e3 * times.back() << " ms";
  return text.str();
}

void print(const Figures& figures) {
  std::printf("%d without, %d with the victim's contribution\nan undisturbed sum:  %s\nknown after:         %s\nnext sum committed:  %s\n",
              figures.without, figures.with, show(figures.usual).c_str(), show(figures.known).c_str(), show(figures.committed).c_str());
}

// Four to eight members, all builders, in place and not; each victim in turn.
Plan nth(std::uint64_t i) {
  const std::vector<std::string> builders{"ring", "trees", "direct", "chain", "halving_doubling"};
  Plan plan;
  plan.count = from_environment("SHOAL_KILL_BYTES", 4 << 20) / sizeof(std::int32_t);
  plan.builder = builders[i % builders.size()];
  plan.members = static_cast<Rank>(4 + i / builders.size() % 5);
  plan.in_place = i / 25 % 2 == 0;
  plan.victim = static_cast<Rank>(i % plan.members);
  return plan;
}

Figures kill_between(double begin, double end, std::uint64_t usually) {
  const std::uint64_t kills = from_environment("SHOAL_KILLS", usually);
  net::JoinOptions options = net::quick();
  options.on_peer_lost = net::OnPeerLost::shrink;
  Figures figures;
  for (std::uint64_t i = 0; i < kills && !testing::Test::HasFailure(); ++i) {
    Plan plan = nth(i);
    plan.moment = begin + (end - begin) * static_cast<double>(i) / static_cast<double>(kills);
    expect_one_outcome(plan, options, figures);
  }
  print(figures);
  return figures;
}

TEST(SurvivorsTcp, agree_when_one_is_killed_at_any_moment) {
  EXPECT_GT(kill_between(0, 1.1, 50).without, 0) << "nobody was killed in the middle";
}

// Where all that the victim had to give has nearly arrived, or just has: some survivors hold the sum when others learn of the loss.
TEST(SurvivorsTcp, agree_when_one_is_killed_at_the_end) {
  kill_between(0.9, 1.0, 20);
}

// A stopped process closes nothing: its silence is found, and the same call goes on without it. SHOAL_STOPS sets how many.
TEST(SurvivorsTcp, agree_when_one_stands_still) {
  net::JoinOptions options = net::quick_health();
  options.on_peer_lost = net::OnPeerLost::shrink;
  const std::uint64_t stops = from_environment("SHOAL_STOPS", 4);
  Figures figures;
  for (std::uint64_t i = 0; i < stops && !HasFailure(); ++i) {
    Plan plan = nth(i);
    plan.moment = static_cast<double>(i) / static_cast<double>(stops);
    plan.signal = SIGSTOP;
    expect_one_outcome(plan, options, figures);
  }
  print(figures);
}

}  // namespace
}  // namespace shoal::collective
