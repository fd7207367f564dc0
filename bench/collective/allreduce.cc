// One member of an all-reduce benchmark over TCP; bench/allreduce.py compares it with gloo and Open MPI.
//
//   shoal run -n 4 -- bench_allreduce --sizes 4096 67108864     place from the environment
//   bench_allreduce --local 4 --sizes 4096 67108864             starts its members itself
//
// Where the job goes on without lost members (SHOAL_ON_PEER_LOST=shrink) its sums do as well (collective/joint.h): what that costs while nobody is
// lost, and with --kill what it costs when somebody is; bench/failure.py --sum reads that.
//
// The sum is checked before anything is timed. Rank 0 prints one JSON line a size: seconds of each of `repeats`
// all-reduces in a row, CPU seconds of all members together per all-reduce, payload bytes that rank 0 sent for one.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/member.h"
#include "shoal/collective/build.h"
#include "shoal/collective/joint.h"
#include "shoal/collective/probe.h"
#include "shoal/collective/run.h"
#include "shoal/collective/select.h"
#include "shoal/core/read_text.h"
#include "shoal/net/call.h"
#include "shoal/net/job.h"

namespace shoal {
namespace {

using namespace std::chrono_literals;
using collective::Collective;

struct Options {
  std::vector<std::uint64_t> sizes{4096, 65536, 1 << 20, 8 << 20};
  std::uint32_t repeats = 10, warmup = 2, local = 0, slice = 0;
  std::string program = "auto";
  int kill = -1;         // this rank kills itself in a sum of the first size
  double at = 0.5;       // of the time that a sum takes
};

double on_clock(Instant at) { return Seconds(at.time_since_epoch()).count(); }  // of the machine: lab hosts share it

class Member {
 public:
  Member(net::Job& job, const Options& options)
      : transport_(job.transport()), options_(options), together_(transport_), runner_(together_.runner()) {
    if (options.program == "auto")
      link_ = collective::probe(transport_, together_.next(collective::kProbeOperations), transport_.now() + 60s);
    if (!net::goes_on(transport_.on_peer_lost())) return;
    std::vector<net::Rank> all(transport_.size());
    std::iota(all.begin(), all.end(), net::Rank{0});
    surviving_ = *net::call(transport_, [&] {
      transport_.on_lost([this](net::Rank, const net::Failure&) { known_ = on_clock(steady_now()); });
      return std::make_shared<collective::Survivors>(transport_, all, std::uint16_t{2});
    });
  }
  ~Member() {
    net::call(transport_, [this] { surviving_.reset(); });
  }

  void measure(std::uint64_t bytes) {
    const std::uint64_t count = bytes / sizeof(float);
    const std::uint32_t size = runner_.size();
    std::vector<float> input(count, static_cast<float>(runner_.rank() + 1)), output(count);
    const auto& plan = plan_for(size, static_cast<double>(bytes));
    const auto once = [&](std::uint64_t operation) {
      surviving_ ? static_cast<void>(surviving_sum(input, output)) : sum_once(runner_, operation, plan, input, output);
    };
    once(together_.next(1));
    const float sum = static_cast<float>(size) * static_cast<float>(size + 1) / 2;
    const bool right = together_.total(std::all_of(output.begin(), output.end(), [&](float v) { return v == sum; }) ? 0 : 1) == 0;
    for (std::uint32_t i = 0; i < options_.warmup; ++i) once(together_.next(1));
    together_.total(0);  // begin together

    std::vector<double> times;
    const double cpu = bench::cpu_seconds();
    const std::uint64_t sent = payload();
    for (std::uint32_t i = 0; i < options_.repeats; ++i) {
      const Instant begin = steady_now();
      once(together_.next(1));
      times.push_back(Seconds(steady_now() - begin).count());
    }
    const std::uint64_t sent_once = (payload() - sent) / std::max(options_.repeats, 1u);
    const double spent = together_.total(bench::cpu_seconds() - cpu);
    if (runner_.rank() != 0) return;
    const nlohmann::ordered_json line{{"bytes", bytes},
                                      {"times", times},
                                      {"cpu", spent / options_.repeats},
                                      {"right", right},
                                      {"program", surviving_ ? "surviving" : plan.program().name},
                                      {"sent", sent_once}};
    say(line);
  }

  // Three sums with all, one in which a member is killed, two more. The victim says when, each other one when it knew, how long a sum with all took, and
  // when those after it were there.
  void lose_one(std::uint64_t bytes) {
    if (!surviving_) throw Error(Code::invalid_argument, "a sum does not go on without a lost member", "--kill", "set SHOAL_ON_PEER_LOST=shrink");
    constexpr int with_all = 3, sums = 6;
    std::vector<float> input(bytes / sizeof(float), static_cast<float>(transport_.rank() + 1)), output(input.size());
    std::thread fuse;
    double usual = 0;
    std::vector<double> ends;
    for (int i = 0; i < sums; ++i) {
      const Instant begin = steady_now();
      if (i == with_all && static_cast<int>(transport_.rank()) == options_.kill) fuse = std::thread([until = begin + std::chrono::duration_cast<Nanoseconds>(Seconds(usual * options_.at))] {
        std::this_thread::sleep_until(until);
        say({{"killed", on_clock(steady_now())}});
        std::raise(SIGKILL);
      });
      float sum = 0;
      for (const net::Rank one : surviving_sum(input, output)) sum += static_cast<float>(one + 1);
      if (!std::ranges::all_of(output, [&](float v) { return v == sum; })) throw Error(Code::internal, "a wrong sum");
      if (i < with_all) usual = Seconds(steady_now() - begin).count();
      if (i >= with_all) ends.push_back(on_clock(steady_now()));
      if (fuse.joinable()) fuse.join();
    }
    say({{"rank", transport_.rank()}, {"usual", usual}, {"known", known_.load()}, {"ends", ends}});
  }

 private:
  void sum_once(collective::Runner& runner, std::uint64_t operation, const collective::Verified& plan,
                const std::vector<float>& input, std::vector<float>& output) {
    const std::uint64_t bytes = input.size() * sizeof(float);
    collective::Run run;
    run.operation = operation;
    run.slice_bytes = options_.slice > 0 ? options_.slice
                      : options_.program.ends_with(".json")
                          ? 64 << 10
                          : collective::slice_bytes(Collective::all_reduce, plan.program().name, runner.size(),
                                                    static_cast<double>(bytes), link_);
    if (bytes <= net::kUrgentLimit) run.priority.cls = net::Class::urgent;
    run.label = "all-reduce of " + std::to_string(bytes) + " bytes";
    runner.run(plan, collective::Layout::even(plan.program(), runner.rank(), input.size()),
               {reinterpret_cast<const std::byte*>(input.data()), reinterpret_cast<std::byte*>(output.data())}, run,
               transport_.now() + 120s);
  }

  // Who contributed.
  std::vector<net::Rank> surviving_sum(const std::vector<float>& input, std::vector<float>& output) {
    return collective::do_together(transport_, *surviving_, 120s, "all-reduce", [&](const collective::Attempt& attempt) {
      const auto& plan = plan_for(attempt.runner->size(), static_cast<double>(input.size() * sizeof(float)));
      sum_once(*attempt.runner, attempt.operation, plan, input, output);
    });
  }

  static void say(const nlohmann::ordered_json& line) {
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }

  const collective::Verified& plan_for(std::uint32_t ranks, double bytes) {
    const auto known = plans_.find({ranks, bytes});
    return known != plans_.end() ? known->second
                                 : plans_.emplace(std::pair(ranks, bytes), made_plan(ranks, bytes)).first->second;
  }

  collective::Verified made_plan(std::uint32_t ranks, double bytes) const {
    if (options_.program.ends_with(".json"))
      return collective::verify(collective::program_from_json(read_text(options_.program), options_.program));
    const std::string name =
        options_.program != "auto" ? options_.program : collective::choose(Collective::all_reduce, ranks, bytes, link_);
    return collective::verify(collective::build(Collective::all_reduce, name, ranks));
  }

  std::uint64_t payload() const {
    std::uint64_t bytes = 0;
    for (net::Rank peer = 0; peer < transport_.size(); ++peer) {
      if (peer != transport_.rank()) bytes += transport_.link(peer).sent;
    }
    return bytes;
  }

  net::Transport& transport_;
  const Options& options_;
  bench::Together together_;
  collective::Runner& runner_;
  collective::LinkModel link_;
  std::map<std::pair<std::uint32_t, double>, collective::Verified> plans_;  // by members and bytes
  std::shared_ptr<collective::Survivors> surviving_;  // where the job goes on without lost members
  std::atomic<double> known_ = 0;
};

int run_member(const Options& options) {
  const auto job = net::join();
  Member member(*job, options);
  if (options.kill >= 0) {
    member.lose_one(options.sizes.at(0));
    return 0;
  }
  for (std::uint64_t bytes : options.sizes) member.measure(bytes);
  return 0;
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  shoal::Options options;
  CLI::App app("all-reduce");
  app.add_option("--sizes", options.sizes, "bytes");
  app.add_option("--repeats", options.repeats, "all-reduces in a row");
  app.add_option("--warmup", options.warmup);
  app.add_option("--local", options.local, "start so many members on this machine");
  app.add_option("--program", options.program, "a builder's name, or a file of `shoal program build`, instead of the choice by measurement");
  app.add_option("--slice", options.slice, "bytes, instead of a millisecond of the link");
  app.add_option("--kill", options.kill, "this rank kills itself in the middle of a sum of the first size");
  app.add_option("--at", options.at, "with --kill: of the time that a sum takes");
  CLI11_PARSE(app, argc, argv);
  return shoal::bench::run("bench_allreduce", options.local, argv, [&] { return shoal::run_member(options); });
}
