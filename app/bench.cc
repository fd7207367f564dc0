// shoal bench exchange [-n 4 [--lab NAME]]: how long members take to add up gradients of several sizes, what it costs them, and with --zero-copy
// how many bytes are not copied where members of one host read each other's memory in place (net/arena.h).
//
// With -n it starts itself as the members of a run; as a member (also under `shoal run`) it takes part, and rank 0 reports. Sums are
// checked before anything is timed; ordinary memory and memory that is read in place take turns, so that both meet the same weather.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/command.h"
#include "app/run.h"
#include "shoal/collective/build.h"
#include "shoal/collective/probe.h"
#include "shoal/collective/run.h"
#include "shoal/collective/select.h"
#include "shoal/collective/tuning.h"
#include "shoal/core/error.h"
#include "shoal/core/host.h"
#include "shoal/core/text.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/environment.h"
#include "shoal/net/job.h"

namespace shoal::app {
namespace {

using namespace std::chrono_literals;
using collective::Collective;

constexpr Nanoseconds kBenchPatience = 120s;
constexpr int kWarmUp = 2;

struct ExchangeOptions {
  Words sizes{"4KB", "64KB", "1MB", "16MB", "64MB"};
  std::uint64_t repeats = 20;
  bool zero_copy = false, json = false;
};

// Of one member, over all repeats.
struct Spent {
  std::vector<double> seconds;
  double cpu = 0;
  std::uint64_t sent = 0, lent = 0;
};

// What is added up, and where the sum goes.
struct Gradients {
  Gradients(net::Transport& transport, std::uint64_t bytes, bool lent) : input(memory(transport, bytes, lent)), output(memory(transport, bytes, lent)) {}
  static std::shared_ptr<std::byte> memory(net::Transport& transport, std::uint64_t bytes, bool lent) {
    if (!lent) return {new std::byte[bytes], [](const std::byte* all) { delete[] all; }};
    auto found = transport.lendable(bytes);
    if (!found) throw Error(Code::unsupported, "no memory that others may read in place", "shoal bench exchange", "leave out --zero-copy, or ask for smaller --sizes");
    return found;
  }
  std::shared_ptr<std::byte> input, output;
};

// Wishes as a run's (collective/tuning.h); none: nothing.
std::shared_ptr<const collective::Tuning> tuning_of(const std::string& rules) { return rules.empty() ? nullptr : std::make_shared<const collective::Tuning>(rules); }
std::string rules_here() { return net::variable("SHOAL_TUNE").value_or(""); }

class ExchangeBench {
 public:
  ExchangeBench(net::Job& job, net::Rendezvous& board, const ExchangeOptions& options, const std::string& rules)
      : transport_(job.transport()), board_(board), options_(options), runner_(transport_, everybody(transport_.size())) {
    transport_.doing("shoal bench: the group's links");
    link_ = collective::probe(transport_, operations_, transport_.now() + kBenchPatience);
    operations_ += collective::kProbeOperations;
    link_.tuning = tuning_of(rules);
  }

  // By memory: ordinary, and with --zero-copy that which is read in place. All members' figures on rank 0.
  nlohmann::ordered_json measure(std::uint64_t bytes) {
    const std::string program = collective::choose(Collective::all_reduce, runner_.size(), static_cast<double>(bytes), link_);
    const collective::Verified plan = collective::program_named(Collective::all_reduce, program, runner_.size());
    std::vector<Gradients> memories;
    for (const bool lent : {false, true}) {
      if (!lent || options_.zero_copy) memories.emplace_back(transport_, bytes, lent);
    }
    std::vector<Spent> spent(memories.size());
    for (const Gradients& gradients : memories) check(plan, gradients, bytes);
    for (int turn = -kWarmUp; turn < static_cast<int>(options_.repeats); ++turn) {
      for (std::size_t i = 0; i < memories.size(); ++i) {
        const Spent one = timed(plan, memories[i], bytes);
        if (turn < 0) continue;
        spent[i].seconds.push_back(one.seconds.front());
        spent[i].cpu += one.cpu;
        spent[i].sent += one.sent;
        spent[i].lent += one.lent;
      }
    }
    nlohmann::ordered_json all{{"bytes", bytes}, {"program", program}, {"memories", nlohmann::ordered_json::array()}};
    for (std::size_t i = 0; i < memories.size(); ++i) all["memories"].push_back(gathered(spent[i], i == 1));
    return all;
  }

 private:
  static std::vector<net::Rank> everybody(net::Rank size) {
    std::vector<net::Rank> members(size);
    std::iota(members.begin(), members.end(), net::Rank{0});
    return members;
  }

  void sum(const collective::Verified& plan, const Gradients& gradients, std::uint64_t bytes) {
    collective::Run run;
    run.operation = operations_++;
    run.slice_bytes = collective::slice_bytes(Collective::all_reduce, plan.program().name, runner_.size(), static_cast<double>(bytes), link_);
    if (bytes <= net::kUrgentLimit) run.priority.cls = net::Class::urgent;
    run.label = "sum of " + show_size(static_cast<double>(bytes));
    runner_.run(plan, collective::Layout::even(plan.program(), runner_.rank(), bytes / sizeof(float)), {gradients.input.get(), gradients.output.get()}, run,
                transport_.now() + kBenchPatience);
  }

  void check(const collective::Verified& plan, const Gradients& gradients, std::uint64_t bytes) {
    const std::span input(reinterpret_cast<float*>(gradients.input.get()), bytes / sizeof(float));
    const std::span output(reinterpret_cast<float*>(gradients.output.get()), input.size());
    const auto of_place = [](std::size_t i) { return static_cast<float>(i % 8191); };  // whole numbers: their sums are exact
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(runner_.rank() + 1) + of_place(i);
    std::ranges::fill(output, -1.0F);
    sum(plan, gradients, bytes);
    const auto members = static_cast<float>(runner_.size());
    for (std::size_t i = 0; i < output.size(); ++i) {
      if (output[i] != members * (members + 1) / 2 + members * of_place(i)) throw Error(Code::internal, "a wrong sum at element " + std::to_string(i), plan.program().name);
    }
  }

  Spent timed(const collective::Verified& plan, const Gradients& gradients, std::uint64_t bytes) {
    const auto [sent, lent] = traffic();
    const double cpu = cpu_seconds();
    const Instant begin = steady_now();
    sum(plan, gradients, bytes);
    const double seconds = Seconds(steady_now() - begin).count();
    const auto [sent_after, lent_after] = traffic();
    return {{seconds}, cpu_seconds() - cpu, sent_after - sent, lent_after - lent};
  }

  std::pair<std::uint64_t, std::uint64_t> traffic() const {
    std::uint64_t sent = 0, lent = 0;
    for (net::Rank peer = 0; peer < transport_.size(); ++peer) {
      if (peer == transport_.rank()) continue;
      const net::LinkStats link = transport_.link(peer);
      sent += link.sent;
      lent += link.lent;
    }
    return {sent, lent};
  }

  // Times are the slowest member's of each repeat; the rest is all members' of one sum.
  nlohmann::ordered_json gathered(const Spent& own, bool lent) {
    const auto key = [this](net::Rank rank) { return fmt::format("bench/{}/{}", told_, rank); };
    board_.put(key(transport_.rank()), nlohmann::json{{"seconds", own.seconds}, {"cpu", own.cpu}, {"sent", own.sent}, {"lent", own.lent}}.dump());
    std::vector<double> seconds(own.seconds.size());
    double cpu = 0, sent = 0, spared = 0;
    for (net::Rank rank = 0; rank < transport_.size(); ++rank) {  // on every member: none goes on while another still measures
      const auto told = nlohmann::json::parse(board_.get(key(rank), kBenchPatience));
      for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] = std::max(seconds[i], told.at("seconds")[i].get<double>());
      cpu += told.at("cpu").get<double>();
      sent += told.at("sent").get<double>();
      spared += told.at("lent").get<double>();
    }
    ++told_;
    std::ranges::sort(seconds);
    const auto repeats = static_cast<double>(options_.repeats);
    return {{"memory", lent ? "read in place" : "ordinary"}, {"median_s", seconds[seconds.size() / 2]}, {"least_s", seconds.front()}, {"most_s", seconds.back()},
            {"cpu_s", cpu / repeats}, {"sent", sent / repeats}, {"not_copied", spared / repeats}};
  }

  net::Transport& transport_;
  net::Rendezvous& board_;
  const ExchangeOptions& options_;
  collective::Runner runner_;
  collective::LinkModel link_;
  std::uint64_t operations_ = 0;
  int told_ = 0;
};

std::string sums_text(const nlohmann::ordered_json& all, net::Rank members, const ExchangeOptions& options) {
  std::string text = fmt::format("sums of float32 of {} members, {} of each size{}; a sum is over when the last member has it\n", members, options.repeats,
                                 options.zero_copy ? ", both kinds of memory in turns" : "");
  text += fmt::format("{:>9}  {:<18} {:<13} {:>10} {:>10} {:>10} {:>9} {:>9} {:>10}\n", "size", "program", "memory", "median ms", "least", "most", "CPU ms", "MB sent", "not copied");
  for (const auto& size : all) {
    for (const auto& of : size.at("memories")) {
      text += fmt::format("{:>9}  {:<18} {:<13} {:>10.3f} {:>10.3f} {:>10.3f} {:>9.3f} {:>9.3f} {:>10.3f}\n", show_size(size.at("bytes").get<double>()),
                          size.at("program").get<std::string>(), of.at("memory").get<std::string>(), 1e3 * of.at("median_s").get<double>(), 1e3 * of.at("least_s").get<double>(),
                          1e3 * of.at("most_s").get<double>(), 1e3 * of.at("cpu_s").get<double>(), 1e-6 * of.at("sent").get<double>(), 1e-6 * of.at("not_copied").get<double>());
    }
    const auto& memories = size.at("memories");
    if (memories.size() == 2) {
      const auto median = [&](int i) { return memories[i].at("median_s").get<double>(); };
      text += fmt::format("{:>9}  {:<18} ordinary / read in place: {:.2f}\n", "", "", median(0) / median(1));
    }
  }
  return text;
}

std::vector<std::uint64_t> sizes_of(const ExchangeOptions& options) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& size : options.sizes) {
    const std::uint64_t bytes = parse_size(size);
    if (bytes < sizeof(float) || bytes % sizeof(float) != 0 || bytes > (std::uint64_t{4} << 30)) refuse("is no size of float32 gradients: " + size, "--sizes", "64KB 16MB");
    sizes.push_back(bytes);
  }
  return sizes;
}

int take_part_in_exchange(const ExchangeOptions& options) {
  const net::Place place = net::find_place();
  if (place.launcher != net::Place::Launcher::shoal || place.size < 2)
    refuse("needs members", "shoal bench exchange", "shoal bench exchange -n 4, or shoal run --hosts ... -- shoal bench exchange");
  net::JoinOptions how = net::with_environment({});
  how.settings = {{"program", "shoal bench exchange"}, {"SHOAL_TUNE", rules_here()}};
  const auto job = net::join(how);
  net::CoordinatorClient board(net::find_secret().value_or(""), place.coordinator, how.patience, place.job);
  ExchangeBench bench(*job, board, options, rules_here());
  auto all = nlohmann::ordered_json::array();
  for (const std::uint64_t bytes : sizes_of(options)) all.push_back(bench.measure(bytes));
  if (place.rank != 0) return 0;
  const std::string text = options.json ? all.dump(2) + "\n" : sums_text(all, place.size, options);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

Action declare_bench_exchange(CLI::App& app) {
  auto run = std::make_shared<RunOptions>();
  auto options = std::make_shared<ExchangeOptions>();
  declare_members(app, *run);
  flag(app, "--sizes", options->sizes, "bytes of gradients, for instance 64KB 16MB")->capture_default_str();
  flag(app, "--repeats", options->repeats, "sums of each size")->check(CLI::Range(1, 100'000))->capture_default_str();
  switch_on(app, "--zero-copy", options->zero_copy, "also in memory that members of one host read in place; counts the bytes that are not copied");
  switch_on(app, "--json", options->json, "for machines");
  return [&app, run, options](const Words&) {
    sizes_of(*options);                                  // before anything starts
    tuning_of(rules_here());
    if (runs_alone(app, *run)) return take_part_in_exchange(*options);
    Words command{std::filesystem::read_symlink("/proc/self/exe"), "bench", "exchange", "--repeats", std::to_string(options->repeats), "--sizes"};
    command.insert(command.end(), options->sizes.begin(), options->sizes.end());
    if (options->zero_copy) command.push_back("--zero-copy");
    if (options->json) command.push_back("--json");
    RunOptions members = *run;
    if (members.name.empty()) members.name = "bench";
    return run_members(members, command, Console::Show::rank_0);
  };
}

}  // namespace

Action declare_bench(CLI::App& app) {
  app.require_subcommand(1);
  return declare_bench_exchange(*app.add_subcommand("exchange", "sums of gradients by size: time, CPU, bytes, and copies that are spared"));
}

}  // namespace shoal::app
