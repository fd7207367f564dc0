// How long workers stand still when a member is killed (kill -9) and the others go on: the longest time between two ticks, when each survivor
// knew of the loss, and whether every sum is exact. bench/table_losses.py kills members in turn.
//
//   shoal run -n 6 --on-peer-lost shrink -- bench_table_losses --servers 3 --victim 1
//
// The first members serve, the others work; with --servers 0 all do both. Every row has a column a worker. A clock: all rows are read, one is
// added to the worker's own column of each, tick. In the end each survivor's columns must hold its clocks in every row, and the victim's, if
// it worked, the same number in every row: one of the clocks that it had begun. Members print JSON lines; times are of the machine's steady clock.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/member.h"
#include "shoal/table/tables.h"

namespace shoal {
namespace {

struct Options {
  std::string consistency = "essp:3";
  std::uint32_t servers = 0, victim = 0, rows = 200;
  double kill_after = 1, go_on = 3;  // seconds: from the start, and the survivors from then on
  bool silent = false;
};

double seconds(Instant at) { return Seconds(at.time_since_epoch()).count(); }

class Member {
 public:
  Member(net::Job& job, const Options& options)
      : options_(options), transport_(job.transport()), rank_(transport_.rank()), size_(transport_.size()),
        tables_(transport_, roles(size_, options)), works_(options.servers == 0 || rank_ >= options.servers) {
    transport_.post([this] {
      transport_.on_lost([this](net::Rank, const net::Failure&) { knew_ = steady_now(); });
    });
  }

  int measure() {
    if (rank_ == options_.victim) killer_ = std::thread([this] { die(); });
    if (works_) work();
    for (net::Rank peer = 0; peer < size_; ++peer) {
      if (peer != rank_) wait_for(peer);
    }
    print();
    if (killer_.joinable()) killer_.detach();  // it came too late
    return right_ ? 0 : 1;
  }

 private:
  static table::TablesOptions roles(net::Rank size, const Options& options) {
    table::TablesOptions roles;
    for (net::Rank rank = 0; rank < size && options.servers > 0; ++rank) (rank < options.servers ? roles.servers : roles.workers).push_back(rank);
    return roles;
  }

  void work() {
    const table::Spec spec{.name = "counts", .width = size_, .consistency = table::consistency_from(options_.consistency)};
    auto table = tables_.worker().open<std::int64_t>(spec);
    std::vector<table::Key> keys(options_.rows + 1);  // the last one holds how many clocks each survivor came to
    for (std::size_t row = 0; row < keys.size(); ++row) keys[row] = row * 0x9e3779b97f4a7c15u;
    const auto counted = std::span(keys).first(options_.rows);
    std::vector<std::int64_t> values(keys.size() * size_), mine(keys.size() * size_);
    for (std::size_t row = 0; row < keys.size(); ++row) mine[row * size_ + rank_] = 1;
    table.barrier();
    ticks_.push_back(steady_now());
    const Instant end = ticks_.back() + std::chrono::duration_cast<Nanoseconds>(Seconds(options_.kill_after + options_.go_on));
    while (ticks_.back() < end) {
      {
        const std::lock_guard lock(beginning_);
        ++begun_;
      }
      table.read(counted, std::span(values).first(counted.size() * size_));
      table.add(counted, std::span<const std::int64_t>(mine).first(counted.size() * size_));
      table.tick();
      ticks_.push_back(steady_now());
    }
    mine[options_.rows * size_ + rank_] = begun_;
    table.add(std::span(keys).last(1), std::span<const std::int64_t>(mine).last(size_));
    table.barrier();
    table.read(keys, values);
    table.barrier();
    right_ = true;
    for (std::uint32_t worker = 0; worker < size_; ++worker) {
      const std::int64_t first = values[worker], said = values[options_.rows * size_ + worker];
      for (std::size_t row = 1; row < options_.rows; ++row) right_ = right_ && values[row * size_ + worker] == first;
      right_ = right_ && (worker == options_.victim || first == said);
      if (worker == options_.victim) of_victim_ = first;
    }
  }

  // Until that member is done or lost: who only serves has nothing else to wait at.
  void wait_for(net::Rank peer) {
    constexpr net::Priority urgent{.cls = net::Class::urgent};
    const net::Tag tag{net::operation_in(1, 0), 0};
    const auto said = std::make_shared<std::byte>(), heard = std::make_shared<std::byte>();
    const auto over = std::make_shared<std::atomic<bool>>();
    transport_.post([=, this] {
      transport_.send(peer, tag, urgent, {said.get(), 1}, [said](const net::Failure&) {});
      transport_.receive(peer, tag, urgent, {heard.get(), 1}, [heard, over](const net::Failure&) { *over = true; });
    });
    transport_.drive([&] { return over->load(); }, transport_.now() + std::chrono::seconds(60));
  }

  void die() {
    std::this_thread::sleep_for(Seconds(options_.kill_after));
    const std::lock_guard lock(beginning_);
    say({{"killed", seconds(steady_now())}, {"begun", begun_}});
    std::raise(options_.silent ? SIGSTOP : SIGKILL);
  }

  void print() const {
    std::optional<std::size_t> longest;
    for (std::size_t tick = 1; tick < ticks_.size(); ++tick) {
      if (!longest || ticks_[tick] - ticks_[tick - 1] > ticks_[*longest] - ticks_[*longest - 1]) longest = tick;
    }
    nlohmann::ordered_json line{{"rank", rank_}, {"knew", seconds(knew_.load())}, {"works", works_}, {"right", right_}};
    if (longest) {
      line["stood"] = seconds_between(ticks_[*longest - 1], ticks_[*longest]);
      line["from"] = seconds(ticks_[*longest - 1]);
      line["on"] = seconds(*std::ranges::lower_bound(ticks_, knew_.load()));
      line["clocks"] = begun_;
      line["of victim"] = of_victim_;
    }
    say(line);
  }
  static void say(const nlohmann::ordered_json& line) {
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }

  const Options& options_;
  net::Transport& transport_;
  const net::Rank rank_, size_;
  table::Tables tables_;
  const bool works_;
  std::thread killer_;
  std::mutex beginning_;         // guards begun_: what a victim says of it is so when it dies
  std::int64_t begun_ = 0;       // clocks
  std::atomic<Instant> knew_{};  // of the loss, by the loop
  std::vector<Instant> ticks_;
  std::int64_t of_victim_ = 0;
  bool right_ = true;
};

int run_member(const Options& options) {
  const auto job = net::join();
  return Member(*job, options).measure();
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  shoal::Options options;
  CLI::App app("a member is lost and the others go on");
  app.add_option("--consistency", options.consistency);
  app.add_option("--servers", options.servers, "the first members serve, the others work; 0: all do both");
  app.add_option("--victim", options.victim, "its rank");
  app.add_option("--rows", options.rows)->check(CLI::PositiveNumber);
  app.add_option("--kill-after", options.kill_after, "seconds");
  app.add_option("--go-on", options.go_on, "seconds after that");
  app.add_flag("--silent", options.silent, "it is stopped (kill -STOP): its connections stay open");
  CLI11_PARSE(app, argc, argv);
  return shoal::bench::run("bench_table_losses", 0, argv, [&] { return shoal::run_member(options); });
}
