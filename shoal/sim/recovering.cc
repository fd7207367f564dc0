// What those who are left do when members are lost, in simulated time (faults.h).
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "shoal/collective/build.h"
#include "shoal/core/error.h"
#include "shoal/net/losses.h"
#include "shoal/sim/simulation.h"

namespace shoal::sim {
namespace {

[[noreturn]] void refuse_fault(const std::string& what, std::size_t fault) {
  throw Error(Code::invalid_argument, what, fmt::format("fault {}", fault));
}

std::uint64_t unrolled_ops(const collective::Program& program) {
  std::uint64_t ops = 0;
  for (const auto& lanes : program.lanes) {
    for (const collective::Lane& lane : lanes) {
      for (const collective::Loop& loop : lane) ops += std::uint64_t{loop.times} * loop.ops.size();
    }
  }
  return ops;
}

}  // namespace

void Simulation::check_faults() const {
  const auto& list = faults_.list;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Fault& fault = list[i];
    if (!(fault.at >= 0) || !std::isfinite(fault.at) || (i > 0 && fault.at < list[i - 1].at)) refuse_fault("its time is none, or before that of the fault in front of it", i);
    if (fault.host >= topology_.hosts.size()) refuse_fault(fmt::format("host {} of {}", fault.host, topology_.hosts.size()), i);
    for (const std::uint32_t link : fault.links) {
      if (link >= topology_.links.size()) refuse_fault(fmt::format("link {} of {}", link, topology_.links.size()), i);
    }
    if (fault.kind == Fault::Kind::slow_link && !(fault.rate > 0)) refuse_fault("its rate is not above 0", i);
    if (fault.kind == Fault::Kind::slow_host && !(fault.factor > 0)) refuse_fault("its factor is not above 0", i);
    if (!loses(fault)) continue;
    if (!faults_.recovery) refuse_fault("nothing says what those who are left do", i);
    if (fault.kind == Fault::Kind::cut && faults_.recovery->rejoin) refuse_fault("nobody can come back over a link that is cut", i);
  }
  if (faults_.recovery && members_.size() > kMostSurvivors) {
    throw Error(Code::invalid_argument, fmt::format("{} hosts; where members may be lost {} are allowed", members_.size(), kMostSurvivors), "faults");
  }
}

void Simulation::plan_faults() {
  for (std::uint32_t i = 0; faults_.recovery && i < jobs_.size(); ++i) {
    const std::vector<topo::Node>& hosts = jobs_[i].hosts;
    if (i == 0 || !jobs_[i].together) operations_.push_back({i, i, std::vector<std::uint32_t>(hosts.size()), std::vector<double>(hosts.size(), kEndless)});
    Operation& operation = operations_.back();
    ++operation.last;
    for (std::uint32_t& open : operation.open) ++open;
    operation_of_.push_back(static_cast<std::uint32_t>(operations_.size() - 1));
  }
  std::vector<bool> known(topology_.hosts.size());
  for (const Job& job : jobs_) {
    for (const topo::Node host : job.hosts) {
      if (!known[host]) members_.push_back(host);
      known[host] = true;
    }
  }
  check_faults();
  cut_.resize(topology_.links.size());
  over_.assign(topology_.hosts.size(), kEndless);
  outcome_.faults.assign(faults_.list.size(), {{}, kEndless, kEndless, 0, 0});
  for (std::uint32_t i = 0; i < faults_.list.size(); ++i) timer(faults_.list[i].at, {Token::Kind::fault, 0, i});
}

// When all that the others tell since then has come to one of them: two small messages go between each pair.
double Simulation::told(const std::vector<topo::Node>& hosts, const std::vector<double>& since, std::size_t to) {
  double when = since[to];
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i != to) when = std::max(when, since[i] + paths_.between(hosts[i], hosts[to]).latency);
  }
  return when + 2 * static_cast<double>(hosts.size() - 1) * costs_.message_seconds;
}

void Simulation::hold(std::uint32_t job, std::uint32_t rank) {
  const std::uint32_t number = operation_of_[job];
  Operation& operation = operations_[number];
  if (--operation.open[rank] > 0) return;
  operation.held[rank] = kernel_.now();
  std::vector<topo::Node> hosts;
  std::vector<double> since;
  for (std::uint32_t i = 0; i < operation.held.size(); ++i) {
    if (life_[host_of(job, i)] == Life::out) continue;
    if (operation.held[i] == kEndless) return;
    hosts.push_back(host_of(job, i));
    since.push_back(operation.held[i]);
  }
  operation.certain = true;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto own = std::ranges::find(jobs_[job].hosts, hosts[i]) - jobs_[job].hosts.begin();
    timer(told(hosts, since, i), {Token::Kind::certain, number, static_cast<std::uint32_t>(own)});
  }
}

void Simulation::finish(Operation& operation, std::uint32_t rank) {
  for (std::uint32_t job = operation.first; job < operation.last; ++job) {
    if (outcome_.jobs[job].finished[rank] == kEndless) finished(job, rank);
  }
}

void Simulation::handle_fault(const Token& token) {
  if (token.kind == Token::Kind::certain) {
    Operation& operation = operations_[token.job];
    if (life_[host_of(operation.first, token.index)] == Life::there) finish(operation, token.index);
    return;
  }
  if (token.kind == Token::Kind::fault) return strike(token.index);
  if (open_losses_.empty() || open_losses_.back() != token.index) return;  // another member has been lost since
  if (token.kind == Token::Kind::agreed) regroup();
  if (token.kind == Token::Kind::joined) bring_state();
  if (token.kind == Token::Kind::returned) come_back();
}

void Simulation::strike(std::uint32_t number) {
  const Fault& fault = faults_.list[number];
  if (fault.kind == Fault::Kind::slow_host) {
    slowness_[fault.host] = fault.factor;
    if (paths_.has_threads()) kernel_.set_capacity(paths_.thread(fault.host), paths_.thread_capacity(fault.factor));
    return;
  }
  if (fault.kind == Fault::Kind::slow_link) {
    for (const std::uint32_t link : fault.links) kernel_.set_capacity(link, fault.rate * costs_.goodput);
    return;
  }
  auto& lost = outcome_.faults[number].lost;
  if (fault.kind == Fault::Kind::cut) {
    lost = who_goes(fault);
  } else if (!gone(fault.host)) {
    lost = {fault.host};
  }
  for (const topo::Node host : lost) {
    life_[host] = Life::lost;
    over_[host] = fault.kind == Fault::Kind::killed ? fault.at : kEndless;
  }
  cut_off();
  vote(number);
}

std::vector<topo::Node> Simulation::who_goes(const Fault& cut) {
  for (const std::uint32_t link : cut.links) cut_[link] = true;
  const auto silent = [this](topo::Node from, topo::Node to) {
    return std::ranges::any_of(paths_.between(from, to).links, [this](std::uint32_t link) { return link < cut_.size() && cut_[link]; });
  };
  std::vector<topo::Node> living = members_;
  std::erase_if(living, [this](topo::Node host) { return gone(host); });
  net::Losses losses(static_cast<net::Rank>(living.size()), Nanoseconds(0));
  for (net::Rank a = 0; a < living.size(); ++a) {
    for (net::Rank b = 0; b < a; ++b) {
      if (silent(living[a], living[b]) || silent(living[b], living[a])) losses.silent(a, b, Instant{});
    }
  }
  std::vector<topo::Node> lost;
  for (const net::Rank rank : losses.conclude(Instant{})) lost.push_back(living[rank]);
  return lost;
}

bool Simulation::is_cut_off(const Path& path, topo::Node from, topo::Node to) const {
  const auto is_cut = [this](std::uint32_t link) { return link < cut_.size() && cut_[link]; };
  return gone(from) || gone(to) || std::ranges::any_of(path.links, is_cut);
}

void Simulation::cut_off() {
  const auto end = [this](std::uint32_t& flow) {
    if (flow != kNone) kernel_.cancel(flow);
    flow = kNone;
  };
  for (Channel& channel : channels_) {
    if (is_cut_off(*channel.path, channel.from, channel.to)) end(channel.flow);
  }
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const auto [from, to] = std::pair(transfers_[i].from, transfers_[i].to);
    if (is_cut_off(paths_.between(from, to), from, to)) end(transfer_flow_[i]);
  }
}

// Each who is left learns of it, and tells the others. Who is silent is not missed before: nobody votes without it.
void Simulation::vote(std::uint32_t number) {
  const Fault& fault = faults_.list[number];
  const auto& lost = outcome_.faults[number].lost;
  if (std::ranges::none_of(lost, [this](topo::Node host) { return std::ranges::count(members_, host) > 0; })) return;
  std::vector<topo::Node> living = members_;
  std::erase_if(living, [this](topo::Node host) { return gone(host); });
  if (recovery().rejoin && std::ranges::none_of(living, [this](topo::Node host) { return life_[host] == Life::there; })) refuse_fault("nobody is left that has the state", number);
  std::vector<double> since;
  for (const topo::Node host : living) {
    since.push_back(fault.at + (fault.kind == Fault::Kind::killed ? paths_.between(fault.host, host).latency : recovery().silence_seconds));
  }
  agreed_ = std::max(agreed_, fault.at);
  for (std::size_t i = 0; i < living.size(); ++i) agreed_ = std::max(agreed_, told(living, since, i));
  open_losses_.push_back(number);
  timer(agreed_, {Token::Kind::agreed, 0, number});
}

void Simulation::regroup() {
  if (state_attempt_ != kNone) attempts_[state_attempt_].running.reset();
  FaultOutcome& outcome = outcome_.faults[open_losses_.back()];
  for (const std::uint32_t loss : open_losses_) outcome_.faults[loss].agreed = kernel_.now();
  std::vector<Operation*> given_up;
  for (Operation& operation : operations_) {
    const std::vector<topo::Node>& hosts = jobs_[operation.first].hosts;
    bool all_there = true, all_hold = true, anybody = false;
    for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
      if (life_[hosts[rank]] == Life::out) continue;
      const bool there = life_[hosts[rank]] == Life::there;
      all_there &= there;
      anybody |= there;
      if (there && operation.held[rank] == kEndless) all_hold = false;
    }
    if (all_there) continue;
    operation.certain |= anybody && all_hold;
    if (operation.certain) {
      for (std::uint32_t job = operation.first; job < operation.last; ++job) attempts_[attempt_[job]].running.reset();
      for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
        if (life_[hosts[rank]] == Life::there) finish(operation, rank);
      }
    } else if (std::optional<double> began = give_up(operation)) {
      given_up.push_back(&operation);
      ++outcome.again;
      outcome.undone = std::max(outcome.undone, kernel_.now() - *began);
    }
  }
  recovery().rejoin ? await_others(given_up) : go_on_with_fewer(given_up);
}

// Returns when it began; nothing if it had not.
std::optional<double> Simulation::give_up(Operation& operation) {
  std::optional<double> began;
  for (std::uint32_t job = operation.first; job < operation.last; ++job) {
    if (attempt_[job] == kNone) continue;
    Attempt& attempt = attempts_[std::exchange(attempt_[job], kNone)];
    attempt.running.reset();
    began = std::min(began.value_or(kEndless), attempt.began);
    for (Begun& begun : begun_[job]) {
      if (begun == Begun::yes) begun = Begun::due;
    }
  }
  operation.open.assign(operation.open.size(), operation.last - operation.first);
  operation.held.assign(operation.held.size(), kEndless);
  return began;
}

std::vector<std::uint32_t> Simulation::ranks_left(std::uint32_t job) const {
  std::vector<std::uint32_t> left;
  for (std::uint32_t rank = 0; rank < jobs_[job].hosts.size(); ++rank) {
    if (life_[host_of(job, rank)] != Life::out) left.push_back(rank);
  }
  return left;
}

std::shared_ptr<const collective::Program> Simulation::program_of(const Job& job, const std::vector<std::uint32_t>& left) const {
  if (left.size() == job.hosts.size()) return job.program;
  if (!job.fewer) throw Error(Code::invalid_argument, "cannot be done by fewer members", job.name);
  return job.fewer(left);
}

std::uint32_t Simulation::begin_with_all_left(std::uint32_t job) {
  auto left = ranks_left(job);
  if (left.size() == jobs_[job].hosts.size()) return begin(job, &jobs_[job], {});
  Job& by_fewer = others_.emplace_back(jobs_[job]);
  by_fewer.program = program_of(jobs_[job], left);
  by_fewer.hosts.clear();
  for (const std::uint32_t rank : left) by_fewer.hosts.push_back(host_of(job, rank));
  return begin(job, &by_fewer, std::move(left));
}

void Simulation::go_on_with_fewer(const std::vector<Operation*>& given_up) {
  std::vector<bool> leaves(life_.size());
  for (topo::Node host = 0; host < life_.size(); ++host) {
    leaves[host] = life_[host] == Life::lost;
    if (leaves[host]) life_[host] = Life::out;
  }
  for (std::uint32_t job = 0; job < jobs_.size(); ++job) {
    for (std::uint32_t rank = 0; rank < jobs_[job].hosts.size(); ++rank) {
      JobOutcome& outcome = outcome_.jobs[job];
      if (!leaves[host_of(job, rank)] || outcome.finished[rank] != kEndless || --open_ranks_[job] > 0) continue;
      --incomplete_jobs_;  // all others have ended it, or there are no others
      outcome.end = std::max(outcome.end, kernel_.now());
      outcome.begin = std::min(outcome.begin, outcome.end);
    }
  }
  std::set<const collective::Program*> built;
  std::uint64_t ops = 0;
  for (const Operation* const operation : given_up) {
    for (std::uint32_t job = operation->first; job < operation->last; ++job) {
      const auto left = ranks_left(job);
      if (left.empty()) continue;
      const auto program = program_of(jobs_[job], left);
      if (built.insert(program.get()).second) ops += unrolled_ops(*program);
    }
  }
  const double when = kernel_.now() + recovery().proof_seconds * static_cast<double>(ops);
  for (Operation* const operation : given_up) operation->not_before = when;
  begin_again(when);
}

void Simulation::begin_again(double when) {
  for (std::uint32_t job = 0; job < jobs_.size(); ++job) {
    for (std::uint32_t rank = 0; rank < begun_[job].size(); ++rank) {
      if (begun_[job][rank] == Begun::due && life_[host_of(job, rank)] == Life::there) timer(when, {Token::Kind::start, job, rank});
    }
  }
  for (const std::uint32_t loss : open_losses_) outcome_.faults[loss].resumed = when;
  open_losses_.clear();
}

void Simulation::await_others(const std::vector<Operation*>& given_up) {
  for (Operation* const operation : given_up) operation->not_before = kEndless;
  double ready = kernel_.now();
  for (const topo::Node host : members_) {
    if (life_[host] != Life::lost) continue;
    over_[host] = std::min(over_[host], kernel_.now());  // by now its launcher has been told whom the others gave up
    ready = std::max(ready, over_[host] + recovery().restart_seconds);
  }
  timer(ready + recovery().join_seconds, {Token::Kind::joined, 0, open_losses_.back()});
}

// From the first member that has it along those that came.
void Simulation::bring_state() {
  for (Life& life : life_) {
    if (life == Life::lost) life = Life::arriving;
  }
  if (recovery().state_bytes < 1) return come_back();
  const auto has_it = std::ranges::find(members_, Life::there, [this](topo::Node host) { return life_[host]; });
  Job& state = others_.emplace_back();
  state.name = "state";
  state.hosts = {*has_it};
  std::ranges::copy_if(members_, std::back_inserter(state.hosts), [this](topo::Node host) { return life_[host] == Life::arriving; });
  const auto size = static_cast<std::uint32_t>(state.hosts.size());
  state.program = std::make_shared<const collective::Program>(collective::chain_broadcast(size, 0));
  state.elements = static_cast<std::uint64_t>(recovery().state_bytes);
  state.element_bytes = 1;
  state_left_ = size;
  state_attempt_ = begin(Sent::kState, &state, {});
  for (std::uint32_t rank = 0; rank < size; ++rank) attempts_[state_attempt_].running->start(rank);
  go_on(state_attempt_);
}

void Simulation::state_came() {
  if (--state_left_ > 0) return;
  timer(kernel_.now() + recovery().state_bytes * recovery().state_seconds_per_byte, {Token::Kind::returned, 0, open_losses_.back()});
}

// Those who came compute anew what they contribute to the operations that were given up.
void Simulation::come_back() {
  const double now = kernel_.now();
  for (Operation& operation : operations_) {
    if (operation.not_before == kEndless) operation.not_before = now;
    const std::vector<topo::Node>& hosts = jobs_[operation.first].hosts;
    for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
      if (life_[hosts[rank]] != Life::arriving) continue;
      if (operation.certain) finish(operation, rank);
      for (std::uint32_t job = operation.first; job < operation.last && !operation.certain; ++job) {
        if (begun_[job][rank] != Begun::due) continue;
        begun_[job][rank] = Begun::no;
        timer(now + (jobs_[job].after.empty() ? 0 : jobs_[job].start), {Token::Kind::start, job, rank});
      }
    }
  }
  for (Life& life : life_) {
    if (life == Life::arriving) life = Life::there;
  }
  begin_again(now);
}

}  // namespace shoal::sim
