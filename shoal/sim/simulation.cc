#include "shoal/sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "shoal/collective/run.h"
#include "shoal/core/error.h"

namespace shoal::sim {
namespace {

constexpr std::size_t kMostJobs = 1 << 24;
constexpr std::size_t kMostCached = 1 << 16;  // steps of a program: of 64 bytes each

bool is_time(double seconds) { return seconds >= 0 && std::isfinite(seconds); }

}  // namespace

Simulation::Simulation(const topo::Topology& topology, std::span<const Job> jobs, std::span<const Transfer> transfers,
                       const Costs& costs, bool trace, const Faults& faults)
    : topology_(topology),
      jobs_(jobs),
      transfers_(transfers),
      costs_(costs),
      trace_(trace),
      faults_(faults),
      paths_(topology, costs),
      kernel_(paths_.capacities()),
      thread_free_(topology.hosts.size(), 0),
      attempt_(jobs.size(), kNone),
      begun_(jobs.size()),
      open_ranks_(jobs.size()),
      waits_for_(jobs.size()),
      next_(jobs.size()),
      rank_of_(jobs.size()),
      transfer_flow_(transfers.size(), kNone),
      incomplete_jobs_(jobs.size()),
      life_(topology.hosts.size(), Life::there),
      slowness_(topology.hosts.size(), 1) {
  check();
  outcome_.jobs.resize(jobs.size());
  outcome_.transfers.assign(transfers.size(), kEndless);
}

void Simulation::check() const {
  if (topology_.relative) refuse("its rates are multiples of a link's, not bytes/s", topology_.name);
  if (jobs_.size() >= kMostJobs) refuse(fmt::format("{} jobs, at most {} are allowed", jobs_.size(), kMostJobs - 1), "simulation");
  const auto check_host = [&](topo::Node host, const std::string& where) {
    if (host >= topology_.hosts.size()) refuse(fmt::format("host {} of {}", host, topology_.hosts.size()), where);
  };
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const Job& job = jobs_[i];
    const std::string where = fmt::format("job {} ({})", i, job.name);
    if (job.hosts.size() != job.program->ranks) refuse(fmt::format("{} hosts for {} ranks", job.hosts.size(), job.program->ranks), where);
    for (const topo::Node host : job.hosts) check_host(host, where);
    auto hosts = job.hosts;
    std::ranges::sort(hosts);
    if (std::ranges::adjacent_find(hosts) != hosts.end()) refuse("a host has two ranks", where);
    for (const Awaited& earlier : job.after) {
      if (earlier.job >= i) refuse(fmt::format("waits for job {}, which is not in front of it", earlier.job), where);
    }
    if (job.together && (i == 0 || job.hosts != jobs_[i - 1].hosts)) refuse("done together with one in front of it that other hosts do", where);
    if (job.chunks && job.chunks->size() != job.program->chunks) refuse("sizes of other chunks than its program has", where);
    if (!is_time(job.start) || !(job.element_bytes > 0)) refuse("start or size of elements is no such number", where);
  }
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const Transfer& transfer = transfers_[i];
    const std::string where = fmt::format("transfer {}", i);
    check_host(transfer.from, where);
    check_host(transfer.to, where);
    if (transfer.from == transfer.to) refuse("from a host to itself", where);
    if (!is_time(transfer.start) || !(transfer.bytes > 0) || !(transfer.rate > 0)) refuse("start, bytes or rate is no such number", where);
  }
}

void Simulation::plan_starts() {
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    const Job& job = jobs_[i];
    outcome_.jobs[i].begin = kEndless;
    outcome_.jobs[i].finished.assign(job.hosts.size(), kEndless);
    begun_[i].assign(job.hosts.size(), Begun::no);
    open_ranks_[i] = static_cast<std::uint32_t>(job.hosts.size());
    waits_for_[i].assign(job.hosts.size(), 0);
    if (!job.after.empty()) {
      for (std::uint32_t rank = 0; rank < job.hosts.size(); ++rank) rank_of_[i].emplace(job.hosts[rank], rank);
    }
    for (const Awaited& earlier : job.after) {
      next_[earlier.job].push_back({i, earlier.first, earlier.last});
      for (const topo::Node host : jobs_[earlier.job].hosts) {
        if (std::uint32_t* const waiting = waits(next_[earlier.job].back(), host)) ++*waiting;
      }
    }
    for (std::uint32_t rank = 0; rank < job.hosts.size(); ++rank) {
      if (waits_for_[i][rank] == 0) schedule(i, rank);
    }
  }
  for (std::uint32_t i = 0; i < transfers_.size(); ++i) timer(transfers_[i].start, {Token::Kind::transfer_start, 0, i});
}

std::uint32_t* Simulation::waits(const Awaited& later, topo::Node host) {
  const auto found = rank_of_[later.job].find(host);
  if (found == rank_of_[later.job].end() || found->second < later.first || found->second >= later.last) return nullptr;
  return &waits_for_[later.job][found->second];
}

void Simulation::schedule(std::uint32_t job, std::uint32_t rank) {
  timer(kernel_.now() + jobs_[job].start, {Token::Kind::start, job, rank});
}

Outcome Simulation::run() {
  plan_starts();
  plan_faults();
  Event event;
  while ((incomplete_jobs_ > 0 || jobs_.empty()) && kernel_.next(event)) {
    if (foresees_) foresee();
    handle(Token::of(event.token));
  }
  if (incomplete_jobs_ == 0) return outcome();
  for (const Attempt& attempt : attempts_) {
    if (!attempt.running) continue;
    refuse(fmt::format("stands still after {:g} s: {}", kernel_.now(), attempt.running->standstill()), "program " + attempt.what->program->name);
  }
  throw Error(Code::internal, "jobs are left of which none has begun", "simulation");
}

std::uint32_t Simulation::begin(std::uint32_t job, const Job* what, std::vector<std::uint32_t> ranks) {
  auto& sized = sized_[Size{what->program.get(), what->elements, what->element_bytes, what->chunks.get()}];
  if (!sized) {
    std::vector<double> bytes;
    for (const std::uint64_t count : what->chunks ? *what->chunks : collective::Layout::even(*what->program, 0, what->elements).count) {
      bytes.push_back(static_cast<double>(count) * what->element_bytes);
    }
    sized = std::make_shared<const SizedProgram>(what->program, std::move(bytes), costs_);
  }
  foresees_ = foresees_ || sized->steps() > kMostCached;
  const auto number = static_cast<std::uint32_t>(attempts_.size());
  if (number >= kMostJobs) refuse(fmt::format("more than {} attempts", kMostJobs - 1), "simulation");
  attempts_.push_back({what, job, std::move(ranks), kernel_.now(), std::make_unique<Running>(*this, number, *what, sized)});
  return number;
}

void Simulation::start(std::uint32_t job, std::uint32_t rank) {
  Begun& begun = begun_[job][rank];
  if (begun == Begun::yes) return;
  begun = Begun::due;
  if (life_[host_of(job, rank)] != Life::there) return;
  if (const double others = faults_.recovery ? operations_[operation_of_[job]].not_before : 0; kernel_.now() < others) {
    if (std::isfinite(others)) timer(others, {Token::Kind::start, job, rank});
    return;
  }
  begun = Begun::yes;
  outcome_.jobs[job].begin = std::min(outcome_.jobs[job].begin, kernel_.now());
  if (attempt_[job] == kNone) attempt_[job] = begin_with_all_left(job);
  Attempt& attempt = attempts_[attempt_[job]];
  const auto place = attempt.ranks.empty() ? rank : std::ranges::lower_bound(attempt.ranks, rank) - attempt.ranks.begin();
  attempt.running->start(static_cast<std::uint32_t>(place));
  go_on(attempt_[job]);
}

void Simulation::go_on(std::uint32_t attempt) {
  auto& running = attempts_[attempt].running;
  if (!running) return;
  running->go();
  if (running->complete()) running.reset();
}

// Has what the next events need fetched into the processor's caches, one step of the way to it an event. Changes nothing.
void Simulation::foresee() {
  constexpr std::uint32_t kSteps = Running::kFetchSteps;
  kernel_.foresee(kSteps + 1, [this](std::uint32_t ahead, std::uint64_t packed) {
    Token token = Token::of(packed);
    if (token.kind < Token::Kind::prepared || token.kind > Token::Kind::taken) return;
    const bool flown = token.kind == Token::Kind::flown;
    if (ahead > kSteps) {
      if (flown) __builtin_prefetch(&channels_[token.index]);
      return;
    }
    if (flown) token = channels_[token.index].serving;
    if (const Running* const running = attempts_[token.job].running.get()) running->fetch(token.index, flown || token.kind == Token::Kind::prepared, kSteps - ahead);
  });
}

void Simulation::handle(const Token& token) {
  if (token.kind >= Token::Kind::certain) return handle_fault(token);
  if (token.kind >= Token::Kind::transfer_start) return handle_transfer(token);
  if (token.kind == Token::Kind::start) return start(token.job, token.index);
  handle_running(token);
}

void Simulation::handle_running(const Token& token) {
  const std::uint32_t channel = token.index;
  const bool flown = token.kind == Token::Kind::flown;
  const std::uint32_t attempt = flown ? channels_[channel].serving.job : token.job;
  if (Running* const running = attempts_[attempt].running.get()) {
    if (flown) running->flown(channels_[channel].serving.index, channels_[channel].began);
    if (token.kind == Token::Kind::prepared) running->prepared(token.index);
    if (token.kind == Token::Kind::arrived) running->arrived(token.index);
    if (token.kind == Token::Kind::taken) running->taken(token.index);
    if (token.kind == Token::Kind::local) running->local_done(token.index);
  }
  if (flown) {
    channels_[channel].flow = kNone;
    serve(channel);
  }
  go_on(attempt);
}

void Simulation::handle_transfer(const Token& token) {
  const Transfer& transfer = transfers_[token.index];
  const Path& on = paths_.between(transfer.from, transfer.to);
  if (token.kind == Token::Kind::transfer_start) {
    if (is_cut_off(on, transfer.from, transfer.to)) return;
    transfer_flow_[token.index] = flow(on, transfer.bytes, {Token::Kind::transfer_flown, 0, token.index}, transfer.priority, transfer.rate);
    return;
  }
  transfer_flow_[token.index] = kNone;
  if (token.kind == Token::Kind::transfer_flown && on.latency > 0) {
    timer(kernel_.now() + on.latency, {Token::Kind::transfer_arrived, 0, token.index});
  } else {
    outcome_.transfers[token.index] = kernel_.now();
  }
}

std::uint32_t Simulation::flow(const Path& on, double bytes, Token token, std::uint32_t priority, double cap) {
  ++outcome_.flows;
  return kernel_.flow(on.links, bytes, token.packed(), priority, cap);
}

void Simulation::done(std::uint32_t attempt, std::uint32_t rank) {
  const Attempt& of = attempts_[attempt];
  if (of.job == Sent::kState) return state_came();
  const std::uint32_t own = of.ranks.empty() ? rank : of.ranks[rank];
  faults_.recovery ? hold(of.job, own) : finished(of.job, own);
}

void Simulation::finished(std::uint32_t job, std::uint32_t rank) {
  JobOutcome& outcome = outcome_.jobs[job];
  outcome.finished[rank] = outcome.end = kernel_.now();
  for (const Awaited& later : next_[job]) {
    std::uint32_t* const waiting = waits(later, jobs_[job].hosts[rank]);
    if (waiting != nullptr && --*waiting == 0) schedule(later.job, static_cast<std::uint32_t>(waiting - waits_for_[later.job].data()));
  }
  if (--open_ranks_[job] == 0) --incomplete_jobs_;
}

std::uint32_t Simulation::channel(topo::Node from, topo::Node to, std::uint32_t priority, bool by_switches) {
  const auto next = static_cast<std::uint32_t>(channels_.size());
  const Path& path = paths_.between(from, to, by_switches);
  const auto [entry, is_new] = channel_of_.try_emplace({&path, priority}, next);
  if (is_new) channels_.push_back({&path, from, to, priority, kNone, 0, {}, {}});
  return entry->second;
}

void Simulation::serve(std::uint32_t at) {
  Channel& channel = channels_[at];
  if (channel.flow != kNone || gone(channel.from) || gone(channel.to)) return;
  while (!channel.waiting.empty()) {
    channel.serving = channel.waiting.pop();
    Running* const running = attempts_[channel.serving.job].running.get();
    if (running == nullptr) continue;  // given up
    channel.began = kernel_.now();
    channel.flow = flow(*channel.path, running->take(channel.serving.index), {Token::Kind::flown, 0, at}, channel.priority, kEndless);
    return;
  }
}

void Simulation::occupy(topo::Node host, double seconds, Token then) {
  thread_free_[host] = std::max(thread_free_[host], kernel_.now()) + seconds * slowness_[host];
  timer(thread_free_[host], then);
}

void Simulation::offer(std::uint32_t channel, std::uint32_t attempt, std::uint32_t stream) {
  channels_[channel].waiting.push({Token::Kind::flown, attempt, stream});
  serve(channel);
}

void Simulation::sent(std::uint32_t attempt, Sent sent) {
  sent.job = attempts_[attempt].job;
  if (trace_) outcome_.trace.push_back(sent);
}

Outcome Simulation::outcome() {
  double& seconds = outcome_.seconds;
  for (const JobOutcome& job : outcome_.jobs) seconds = std::max(seconds, job.end);
  if (jobs_.empty()) {
    for (const double arrived : outcome_.transfers) seconds = std::max(seconds, std::isfinite(arrived) ? arrived : 0);
  }
  for (std::uint32_t link = 0; link < topology_.links.size(); ++link) {
    const double bytes = kernel_.carried(link);
    outcome_.links.push_back({bytes, seconds > 0 ? bytes / (topology_.links[link].rate * costs_.goodput * seconds) : 0});
    if (outcome_.links[link].busy > outcome_.links[outcome_.bottleneck].busy) outcome_.bottleneck = link;
  }
  return std::move(outcome_);
}

Outcome simulate(const topo::Topology& topology, std::span<const Job> jobs, std::span<const Transfer> transfers, const Costs& costs,
                 bool trace, const Faults& faults) {
  return Simulation(topology, jobs, transfers, costs, trace, faults).run();
}

}  // namespace shoal::sim
