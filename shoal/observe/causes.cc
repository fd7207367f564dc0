#include "shoal/observe/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "shoal/core/text.h"
#include "shoal/exchange/way.h"

namespace shoal::observe {
namespace {

constexpr double kSlowLink = 0.5;         // of the median of the other links: below it a link is called slow
constexpr double kBusyLink = 0.5;         // of the planned rate: what links reach that have enough to carry
constexpr double kCarriesEnough = 0.1;    // of the busiest link's bytes: below it a link's rate says little
constexpr double kMostWaits = 2.0 / 3;    // of all waiting for one member: then it is the slow one
constexpr double kSameSpeed = 0.05;       // of a step: members that differ by less are equally fast

std::string percent(double share) { return fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 1 : 0); }
std::string megabytes(double rate) { return fmt::format("{:.1f} MB/s", rate / 1e6); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class T>
double mean_of(const Account& account, T RankAccount::* part) {
  double sum = 0;
  for (const RankAccount& rank : account.ranks) sum += static_cast<double>(rank.*part);
  return account.ranks.empty() ? 0 : sum / static_cast<double>(account.ranks.size());
}

// What a member needs for a step of its own, without anybody else.
double own_time(const RankAccount& rank) {
  return rank.spent.forward + rank.spent.backward + rank.spent.optimizer + rank.spent.other - rank.pauses - rank.planning;
}

// What is far slower than its like.
struct Slow {
  std::string what;  // "rank 2 (owl)", "the link 0 -> 1"; empty: nothing
  std::string way;   // "sends", "receives", "brings"
  double rate = 0, others = 0;  // bytes/s at the fastest
};

// Keeps in `slow` the slowest of these rates, if it is far below the median of the others.
template <class Name>
void keep_slowest(const std::vector<double>& rates, const char* way, Name name, Slow& slow) {
  if (rates.size() < 2) return;
  const auto slowest = std::min_element(rates.begin(), rates.end());
  std::vector<double> others(rates.begin(), slowest);
  others.insert(others.end(), slowest + 1, rates.end());
  const double usual = median(others);
  if (*slowest <= 0 || *slowest >= kSlowLink * usual) return;
  if (!slow.what.empty() && slow.rate / slow.others <= *slowest / usual) return;
  slow = {name(static_cast<std::size_t>(slowest - rates.begin())), way, *slowest, usual};
}

// A member whose own link is slow, in either direction; else one link between two members.
Slow find_slow(const Account& account) {
  Slow slow;
  std::vector<double> in, out, rates;
  for (const RankAccount& rank : account.ranks) {
    in.push_back(rank.fastest_in);
    out.push_back(rank.fastest_out);
  }
  const auto member = [&](std::size_t i) { return fmt::format("rank {} ({})", account.ranks[i].rank, account.ranks[i].host); };
  keep_slowest(in, "receives", member, slow);
  keep_slowest(out, "sends", member, slow);
  if (!slow.what.empty()) return slow;
  double most = 0;
  for (const LinkAccount& link : account.links) most = std::max(most, link.in_training);
  std::vector<const LinkAccount*> links;
  for (const LinkAccount& link : account.links) {
    if (link.in_training < kCarriesEnough * most || link.fastest <= 0) continue;
    links.push_back(&link);
    rates.push_back(link.fastest);
  }
  keep_slowest(rates, "brings", [&](std::size_t i) { return fmt::format("the link {} -> {}", links[i]->from, links[i]->to); }, slow);
  return slow;
}

class Explainer {
 public:
  Explainer(const Account& account, const exchange::ExchangePlan* plan)
      : account_(account), plan_(plan), steps_(static_cast<double>(std::max<std::int64_t>(1, account.steps))), network_(account.mean.network) {}

  Explanation explain() {
    const double before = mean_of(account_, &RankAccount::start_up), planning = mean_of(account_, &RankAccount::planning);
    const double start_up = before + planning;
    made_.seconds = account_.mean.whole() + before;
    made_.computing = account_.mean.forward + account_.mean.backward;
    made_.steps = account_.steps;
    made_.members = account_.ranks.size();
    made_.remarks = account_.remarks;
    made_.remarks.insert(made_.remarks.end(), account_.notes.begin(), account_.notes.end());
    first_steps();
    network();
    slow_member();
    loading();
    add(CauseKind::optimizer, account_.mean.optimizer, "the optimizer",
        fmt::format("optimizer.step() computes {} a step", show_seconds(account_.mean.optimizer / steps_)),
        "fused=True, where the optimizer has it, takes one pass over the parameters");
    add(CauseKind::recording, mean_of(account_, &RankAccount::recording), "recording the run",
        fmt::format("the events of a step take {} to write", show_seconds(mean_of(account_, &RankAccount::recording) / steps_)),
        "a disk that is not shared; larger steps have fewer events");
    add(CauseKind::start_up, start_up, "start-up",
        fmt::format("{} from shoal.init() to the first forward pass, {} to measure links and make the plan", show_seconds(before),
                    show_seconds(planning)),
        paid_once(start_up));
    const double known = mean_of(account_, &RankAccount::loading) + mean_of(account_, &RankAccount::pauses) +
                         mean_of(account_, &RankAccount::recording) + planning;
    const double rest = std::max(0.0, account_.mean.other - known);
    add(CauseKind::rest, rest, "nothing that was recorded",
        fmt::format("{} a step inside of steps, outside of forward, backward and optimizer: the loss, clipping, the script",
                    show_seconds(rest / steps_)),
        "PyTorch's profiler shows what runs there");
    std::stable_sort(made_.causes.begin(), made_.causes.end(), [](const Cause& a, const Cause& b) { return a.seconds > b.seconds; });
    return std::move(made_);
  }

 private:
  void add(CauseKind kind, double seconds, std::string title, std::string says, std::string remedy) {
    if (seconds > 0) made_.causes.push_back({kind, seconds, std::move(title), std::move(says), std::move(remedy)});
  }

  std::string paid_once(double seconds) const {
    return fmt::format("paid once: with ten times the steps it is {}", percent(seconds / (10 * made_.seconds - 9 * seconds)));
  }

  // --- the network

  void first_steps() {
    const double first = mean_of(account_, &RankAccount::unplanned), steps = mean_of(account_, &RankAccount::unplanned_steps);
    if (plan_ == nullptr || first <= 0 || steps >= steps_) return;
    const double longer = first - (network_ - first) * steps / (steps_ - steps);
    if (longer <= 0) return;
    network_ -= longer;
    add(CauseKind::first_steps, longer, "the first steps, before the plan",
        fmt::format("the first {:.0f} steps, from which the plan is made, waited {} for the network, {} longer than as many later ones", steps, show_seconds(first),
                    show_seconds(longer)),
        paid_once(longer));
  }

  void network() {
    const double exposed = network_ / steps_;
    if (exposed <= 0) return;
    if (plan_ == nullptr || plan_->units.empty()) {
      add(CauseKind::communication, network_, "communication",
          fmt::format("{} of each step wait for the network, {}", show_seconds(exposed), carried()),
          "no plan was saved to judge it by (runs of a few steps have none); shoal doctor measures the links");
      return;
    }
    collective::LinkModel no_latency = plan_->link;
    no_latency.alpha = no_latency.fan_in_alpha = 0;
    const double predicted = plan_->predicted_exposed();
    const double bytes = std::min(exposed, exchange::priced_on(*plan_, no_latency).predicted_exposed());
    const double latency = std::clamp(predicted - bytes, 0.0, exposed - bytes);
    const double above = exposed - bytes - latency;
    late_ = std::clamp(imbalance() - account_.mean.waiting, 0.0, above * steps_);
    const double slower = above - late_ / steps_;
    slow_ = find_slow(account_);
    // Where even the others stay far below the links, little was to be sent, and rates say nothing.
    if (slow_.others < kBusyLink * planned_rate()) slow_ = {};
    if (!slow_.what.empty()) return slow_link(bytes, latency + slower);
    add(CauseKind::link, bytes * steps_, "the links are the limit", full_link(exposed), fewer_bytes());
    add(CauseKind::latency, latency * steps_, "latency of small operations",
        fmt::format("{} operations a step, each with messages that take {} however small they are", plan_->units.size(),
                    show_seconds(plan_->link.alpha)),
        "fewer exchanges: gradient accumulation (model.no_sync()) or a larger batch");
    add(CauseKind::slower, slower * steps_, "the network was slower than planned",
        fmt::format("{} of each step wait for the network where the plan counted on {}; {}", show_seconds(exposed),
                    show_seconds(predicted), carried()),
        "shoal doctor measures every pair; a replayed plan (--plan) is right for the links it was made on; members that share cores slow each other");
  }

  // With all links like the others, the bytes would take that much less.
  void slow_link(double bytes, double rest) {
    const double left = slow_.rate / slow_.others * bytes;
    add(CauseKind::slow_link, (bytes - left + rest) * steps_, "a slow link: " + slow_.what,
        fmt::format("{} {} {} at its fastest, the others {}; every member goes at its pace", slow_.what, slow_.way, megabytes(slow_.rate),
                    megabytes(slow_.others)),
        fmt::format("look at its cable, its duplex and who else uses it (shoal doctor measures every pair), or train without it: at the "
                    "others' rate {} a step would be left of {}",
                    show_seconds(left), show_seconds(network_ / steps_)));
    add(CauseKind::link, left * steps_, "the links are the limit", "what the same bytes would take on links like the others'", fewer_bytes());
  }

  // Seconds that the mean member lost to members whose own time is longer than the mean.
  double imbalance() const {
    double sum = 0, longest = 0;
    for (const RankAccount& rank : account_.ranks) {
      sum += own_time(rank);
      longest = std::max(longest, own_time(rank));
    }
    return longest - sum / static_cast<double>(account_.ranks.size());
  }

  double rate_on_the_way() const {
    const double seconds = mean_of(account_, &RankAccount::on_the_way);
    return seconds > 0 ? mean_of(account_, &RankAccount::received) / seconds : 0;
  }

  // The rate that the plan counted on: the larger part of the bytes decides which.
  double planned_rate() const {
    double direct = 0, all = 0;
    for (const exchange::Unit& unit : plan_->units) {
      const auto bytes = static_cast<double>(plan_->bytes_of(unit));
      all += bytes;
      if (unit.way == "direct") direct += bytes;
    }
    const collective::LinkModel& link = plan_->link;
    return 2 * direct > all && link.fan_in > 0 ? link.fan_in : link.rate;
  }

  std::string carried() const {
    const std::string of = plan_ != nullptr ? fmt::format(" of {:.1f}", planned_rate() / 1e6) : "";
    return fmt::format("links carried {:.1f}{} MB/s with gradients on their way", rate_on_the_way() / 1e6, of);
  }

  std::string full_link(double exposed) const {
    const double bytes = mean_of(account_, &RankAccount::received) / steps_;
    std::string text = fmt::format("{}; a member receives {} a step, at that rate {} at least, of which {} are not hidden", carried(),
                                   show_size(bytes), show_seconds(bytes / planned_rate()), show_seconds(exposed));
    const auto most = std::max_element(account_.tensors.begin(), account_.tensors.end(), [](const auto& a, const auto& b) {
      return a.exposed * static_cast<double>(a.exchanges) < b.exposed * static_cast<double>(b.exchanges);
    });
    if (most != account_.tensors.end() && most->exchanges > 0) {
      const double share = most->exposed * static_cast<double>(most->exchanges) /
                           (account_.mean.network * static_cast<double>(account_.ranks.size()));
      text += fmt::format("; {} of it before {} ({}{})", percent(std::min(1.0, share)), most->name, show_size(most->bytes),
                          most->way.empty() ? "" : ", " + most->way);
    }
    return text;
  }

  // Twice the work before the same bytes: X / (T + forward + backward). Half the bytes: (X - b / 2) / (T - b / 2).
  std::string fewer_bytes() const {
    const double step = account_.seconds_a_step() - (account_.mean.network - network_) / steps_, exposed = network_ / steps_;
    const double work = (account_.mean.forward + account_.mean.backward) / steps_;
    const double samples = mean_of(account_, &RankAccount::samples);
    const std::string now = percent(exposed / step);
    std::string text = "only fewer bytes help: ";
    text += samples > 0 ? fmt::format("a batch of {:.0f} instead of {:.0f} a member", 2 * samples, samples) : "twice the batch a member";
    text += fmt::format(" or gradient accumulation over two (model.no_sync()): exposed {} -> {} of a step", now, percent(exposed / (step + work)));
    const bool whole = std::any_of(plan_->units.begin(), plan_->units.end(), [&](const exchange::Unit& unit) {
      return exchange::way_named(unit.way)->exact() && plan_->tensors[unit.tensors.front()].type == DType::f32;
    });
    if (whole) {
      text += fmt::format("; --plan bf16 (lossy), half the bytes: {} -> {}", now, percent(exposed / 2 / (step - exposed / 2)));
    }
    return text;
  }

  // --- members

  // Whom the others waited for: what was seen as waiting, and what the network's time hides of it.
  void slow_member() {
    const double seconds = account_.mean.waiting + late_;
    if (seconds <= 0) return;
    std::map<int, double> blame;
    for (const RankAccount& rank : account_.ranks) {
      for (const auto& [peer, waited] : rank.waited_for) blame[peer] += waited / static_cast<double>(account_.ranks.size());
    }
    if (late_ > 0) blame[longest_rank()] += late_;
    std::vector<std::pair<double, int>> order;
    for (const auto& [rank, blamed] : blame) order.emplace_back(blamed, rank);
    std::sort(order.rbegin(), order.rend());
    if (order.front().first < kMostWaits * seconds) {
      std::string who;
      for (const auto& [blamed, rank] : order) who += fmt::format("{}rank {} {}", who.empty() ? "" : ", ", rank, percent(blamed / seconds));
      add(CauseKind::turns, seconds, "members wait for each other by turns", who + " of it: no one is always the last",
          "members that share cores or a machine disturb each other: fewer threads each (OMP_NUM_THREADS), or a machine for each");
      return;
    }
    blame_one(order.front().second, seconds);
  }

  int longest_rank() const {
    const auto longest = std::max_element(account_.ranks.begin(), account_.ranks.end(),
                                          [](const auto& a, const auto& b) { return own_time(a) < own_time(b); });
    return longest->rank;
  }

  void blame_one(int late, double seconds) {
    const auto found = std::find_if(account_.ranks.begin(), account_.ranks.end(), [&](const auto& r) { return r.rank == late; });
    if (found == account_.ranks.end()) {
      add(CauseKind::slow_member, seconds, fmt::format("waiting for rank {}", late), "it left no events here", "look at its log");
      return;
    }
    const RankAccount& rank = *found;
    const std::string who = fmt::format("rank {} ({})", late, rank.host);
    struct Part {
      const char* what;
      double (*of)(const RankAccount&);
    };
    static constexpr Part parts[] = {
        {"computes (forward and backward)", [](const RankAccount& r) { return r.spent.forward + r.spent.backward; }},
        {"takes for the optimizer", [](const RankAccount& r) { return r.spent.optimizer; }},
        {"spends between and beside them (data loading, the script)", [](const RankAccount& r) { return r.spent.other - r.pauses - r.planning; }}};
    const Part* worst = nullptr;
    double own = 0, others = 0;
    for (const Part& part : parts) {
      std::vector<double> theirs;
      for (const RankAccount& other : account_.ranks) {
        if (other.rank != late) theirs.push_back(part.of(other));
      }
      if (worst && part.of(rank) - median(theirs) <= own - others) continue;
      worst = &part;
      own = part.of(rank);
      others = median(theirs);
    }
    if (own - others < kSameSpeed * account_.mean.whole()) {
      const bool slow_link = slow_.what == who;
      add(CauseKind::slow_member, seconds, "waiting for " + who,
          slow_link ? "it comes late because its link is slow" : "it comes late, but its own time is no longer than the others'",
          slow_link ? "that of its link" : "look at what else runs on that machine, and how it is connected: shoal doctor");
      return;
    }
    std::string says = fmt::format("it {} {} a step, the median of the others {}", worst->what, show_seconds(own / steps_),
                                   show_seconds(others / steps_));
    if (others > 0) says += fmt::format(": {:.1f}x", own / others);
    std::string remedy;
    if (worst == &parts[0]) {
      const double equal = std::floor(rank.samples * others / own);
      remedy = "see what else runs there";
      if (equal >= 1) {
        remedy += fmt::format("; or give it {:.0f} samples a batch instead of {:.0f}: means are weighted by samples", equal, rank.samples);
      }
    } else if (worst == &parts[1]) {
      remedy = "see what else runs there, and whether it has the same optimizer and threads";
    } else {
      remedy = "its data comes slowly: local files, DataLoader(num_workers=2); or only it prints, saves, evaluates";
    }
    add(CauseKind::slow_member, seconds, "waiting for " + who, std::move(says), std::move(remedy));
  }

  // --- the script

  void loading() {
    const double seconds = mean_of(account_, &RankAccount::loading);
    add(CauseKind::loading, seconds, "data loading",
        fmt::format("{} of each step lie between optimizer.step() and the next forward pass", show_seconds(seconds / steps_)),
        fmt::format("DataLoader(num_workers=2, persistent_workers=True) loads while the step runs: {} -> {} a step at best",
                    show_seconds(account_.seconds_a_step()), show_seconds(account_.seconds_a_step() - seconds / steps_)));
    std::int64_t paused = 0;
    for (const RankAccount& rank : account_.ranks) paused = std::max(paused, rank.paused);
    const double pauses = mean_of(account_, &RankAccount::pauses);
    add(CauseKind::pauses, pauses, "pauses between steps",
        fmt::format("{} longer than a step, of {} each", paused, show_seconds(pauses / static_cast<double>(std::max<std::int64_t>(1, paused)))),
        "evaluation, checkpoints and the start of an epoch: less often, or beside training (persistent_workers=True)");
  }

  const Account& account_;
  const exchange::ExchangePlan* plan_;
  const double steps_;
  double network_;      // seconds of the run, without what first_steps() has told
  Slow slow_;
  double late_ = 0;  // seconds of the run in which the network's time was a slow member's
  Explanation made_;
};

}  // namespace

Explanation explain(const Account& account, const exchange::ExchangePlan* plan) { return Explainer(account, plan).explain(); }

}  // namespace shoal::observe
