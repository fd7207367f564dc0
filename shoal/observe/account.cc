#include "shoal/observe/account.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <unordered_map>

#include "shoal/exchange/way.h"
#include "shoal/observe/intervals.h"

namespace shoal::observe {
namespace {

constexpr std::size_t kMostNotes = 50;

double seconds_of(const Event& event) { return Seconds(event.end - event.begin).count(); }

// Bytes by the 100 ms in which they came.
class Arrivals {
 public:
  void add(const Event& event) { windows_[event.end.time_since_epoch() / kWindow] += event.value; }

  double bytes() const {
    double sum = 0;
    for (const auto& [window, bytes] : windows_) sum += bytes;
    return sum;
  }

  // The rate that one byte in ten exceeds.
  double fastest() const {
    std::vector<double> bytes;
    double left = 0;
    for (const auto& [window, sum] : windows_) {
      bytes.push_back(sum);
      left += sum / 10;
    }
    std::sort(bytes.rbegin(), bytes.rend());
    for (const double sum : bytes) {
      left -= sum;
      if (left <= 0) return sum / Seconds(kWindow).count();
    }
    return 0;
  }

 private:
  static constexpr Nanoseconds kWindow = std::chrono::milliseconds(100);
  std::unordered_map<std::int64_t, double> windows_;
};

// The headings, weakest first; -1 for events that take no time of the caller.
enum Heading { kForward, kBackward, kOptimizer, kNetwork, kWaiting, kHeadings };

int heading_of(const Event& event) {
  switch (event.kind) {
    case EventKind::forward: return kForward;
    case EventKind::backward: return kBackward;
    case EventKind::optimizer: return kOptimizer;
    case EventKind::exposed: return event.peer < 0 ? kNetwork : kWaiting;
    default: return -1;
  }
}

// What a member's spans come to; its events are by begin.
class MemberTimes {
 public:
  explicit MemberTimes(const RankEvents& rank) {
    account.rank = rank.who.rank;
    account.host = rank.who.host;
    read(rank.events);
  }

  RankAccount account;
  Intervals exposed, on_the_way;

 private:
  void read(const std::vector<Event>& events) {
    for (const Event& event : events) {
      if (heading_of(event) >= 0) edges_of(event);
      if (event.kind == EventKind::exposed) exposed.add(event.begin, event.end);
      if (event.kind == EventKind::exchange) on_the_way.add(event.begin, event.end);
      if (event.kind == EventKind::recording) recording_.add(event.begin, event.end);
      if (event.kind == EventKind::planning) planning_.add(event.begin, event.end);
      count_step(event);
    }
    account.steps = static_cast<std::int64_t>(optimizer_steps_.empty() ? backward_steps_.size() : optimizer_steps_.size());
    if (!edges_.empty()) spend(events);
    account.on_the_way = on_the_way.seconds();
    if (on_the_way.seconds() > 0) account.hidden = 1 - on_the_way.overlap(exposed) / on_the_way.seconds();
  }

  struct Edge {
    Instant at;
    int heading, peer;
    int opens;  // 1 or -1
  };

  void edges_of(const Event& event) {
    edges_.push_back({event.begin, heading_of(event), event.peer, 1});
    edges_.push_back({event.end, heading_of(event), event.peer, -1});
  }

  void count_step(const Event& event) {
    if (event.kind == EventKind::forward && event.value > 0) {
      account.samples += (event.value - account.samples) / static_cast<double>(++sampled_);
    }
    if (event.step < 0) return;
    if (event.kind == EventKind::optimizer) optimizer_steps_.insert(event.step);
    if (event.kind == EventKind::backward) backward_steps_.insert(event.step);
  }

  // When the plan was made from what the first steps took. The beginning of time where none was: it was given, or is another run's.
  static Instant planned_at(const std::vector<Event>& events) {
    for (const Event& event : events) {
      if (event.kind == EventKind::planning && event.value > 0) return event.begin;
    }
    return {};
  }

  // Walks over the edges; between two of them the strongest open heading has the time.
  void spend(const std::vector<Event>& events) {
    std::stable_sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
    const Instant begin = edges_.front().at, end = edges_.back().at;
    account.start_up = Seconds(begin - events.front().begin).count();
    for (const Event& event : events) {
      if (event.kind == EventKind::received && event.begin >= begin && event.begin < end) account.received += event.value;
    }
    const Instant planned = planned_at(events);
    std::set<std::int64_t> first_steps;
    for (const Event& event : events) {
      if (event.kind == EventKind::backward && event.step >= 0 && event.end <= planned) first_steps.insert(event.step);
    }
    account.unplanned_steps = static_cast<std::int64_t>(first_steps.size());
    std::vector<double> gaps;  // before a forward pass
    double gap = 0;
    std::array<int, kHeadings> open{};
    std::map<int, int> waited_peers;
    const std::array<double TimeSpent::*, kHeadings> place = {&TimeSpent::forward, &TimeSpent::backward, &TimeSpent::optimizer,
                                                              &TimeSpent::network, &TimeSpent::waiting};
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      const Edge& edge = edges_[i];
      open[static_cast<std::size_t>(edge.heading)] += edge.opens;
      if (edge.opens > 0) {
        if (edge.heading == kForward && gap > 0) gaps.push_back(gap);
        gap = 0;
      }
      if (edge.heading == kWaiting) {
        int& waits = waited_peers[edge.peer];
        waits += edge.opens;
        if (waits == 0) waited_peers.erase(edge.peer);
      }
      if (i + 1 == edges_.size()) break;
      const double seconds = Seconds(edges_[i + 1].at - edge.at).count();
      const auto strongest = std::find_if(open.rbegin(), open.rend(), [](int count) { return count > 0; });
      if (strongest == open.rend()) {
        const double recording = recording_.overlap(edge.at, edges_[i + 1].at);
        account.spent.other += seconds;
        const double planning = planning_.overlap(edge.at, edges_[i + 1].at);
        account.recording += recording;
        account.planning += planning;
        gap += seconds - recording - planning;
        continue;
      }
      const auto heading = open.rend() - strongest - 1;
      account.spent.*place[static_cast<std::size_t>(heading)] += seconds;
      if (heading == kNetwork && edges_[i + 1].at <= planned) account.unplanned += seconds;
      if (open[kWaiting] > 0 && seconds > 0) account.waited_for[waited_peers.begin()->first] += seconds;
    }
    edges_ = {};
    tell_pauses(std::move(gaps));
  }

  void tell_pauses(std::vector<double> gaps) {
    if (gaps.empty()) return;
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    const double usual = *middle;
    const double step = (account.spent.whole() - account.spent.other) / static_cast<double>(std::max<std::int64_t>(1, account.steps));
    for (const double gap : gaps) {
      const bool pause = gap > step && gap > kPause * usual;
      (pause ? account.pauses : account.loading) += gap;
      if (pause) ++account.paused;
    }
  }

  std::vector<Edge> edges_;
  Intervals recording_, planning_;
  std::int64_t sampled_ = 0;
  std::set<std::int64_t> optimizer_steps_, backward_steps_;
};

class Tensors {
 public:
  explicit Tensors(const exchange::ExchangePlan* plan) {
    if (plan == nullptr) return;
    const bool local_steps = exchange::parse_choice(plan->choice, "plan").rounds.has_value();
    for (const exchange::Unit& unit : plan->units) {
      TensorAccount& tensor = find(plan->name_of(unit));
      tensor.way =
          unit.way + (exchange::way_named(unit.way)->exact() ? "" : " (lossy)") + (local_steps ? " (local steps)" : "");
      tensor.bytes = static_cast<double>(plan->bytes_of(unit));
      tensor.predicted_exposed = unit.predicted_exposed;
    }
  }

  void add(const RunEvents& run, const RankEvents& rank, const MemberTimes& member) {
    for (const Event& event : rank.events) {
      if (event.kind == EventKind::exchange) {
        TensorAccount& tensor = find(run.name_of(event));
        tensor.sent += event.value;
        ++tensor.exchanges;
        tensor.seconds += seconds_of(event);
        tensor.hidden -= member.exposed.overlap(event.begin, event.end);  // becomes a share in means()
      } else if (event.kind == EventKind::exposed) {
        TensorAccount& tensor = find(run.name_of(event));
        (event.peer < 0 ? tensor.exposed : tensor.waited) += seconds_of(event);
      }
    }
  }

  std::vector<TensorAccount> means() {
    for (TensorAccount& tensor : tensors_) {
      const double exposed_seconds = 1 - tensor.hidden;
      tensor.hidden = tensor.seconds > 0 ? 1 - exposed_seconds / tensor.seconds : 1;
      const auto count = static_cast<double>(std::max<std::int64_t>(1, tensor.exchanges));
      tensor.sent /= count;
      tensor.seconds /= count;
      tensor.exposed /= count;
      tensor.waited /= count;
    }
    return std::move(tensors_);
  }

 private:
  TensorAccount& find(const std::string& name) {
    const auto [found, is_new] = index_.try_emplace(name, tensors_.size());
    if (is_new) tensors_.emplace_back().name = name;
    return tensors_[found->second];
  }

  std::vector<TensorAccount> tensors_;
  std::unordered_map<std::string, std::size_t> index_;
};

std::vector<LinkAccount> links_into(const RankEvents& rank, double seconds) {
  struct Sums {
    double bytes = 0;
    Arrivals arrivals;
  };
  std::map<int, Sums> by_peer;
  // Broadcasts before the first step and the probe of the links load some links more than others.
  bool trains = false;
  Intervals planning;
  for (const Event& event : rank.events) {
    if (event.kind == EventKind::planning) planning.add(event.begin, event.end);
  }
  for (const Event& event : rank.events) {
    if (heading_of(event) >= 0) trains = true;
    if (event.kind != EventKind::received) continue;
    Sums& sums = by_peer[event.peer];
    sums.bytes += event.value;
    if (trains && planning.overlap(event.begin, event.end + Nanoseconds(1)) == 0) sums.arrivals.add(event);
  }
  std::vector<LinkAccount> links;
  for (const auto& [peer, sums] : by_peer) {
    links.push_back({peer, rank.who.rank, sums.bytes, seconds, sums.arrivals.fastest(), sums.arrivals.bytes()});
  }
  return links;
}

void tell_fastest(const RunEvents& run, Account& account) {
  std::map<int, Arrivals> in, out;
  for (const RankEvents& rank : run.ranks) {
    for (const Event& event : rank.events) {
      if (event.kind != EventKind::received) continue;
      in[rank.who.rank].add(event);
      out[event.peer].add(event);
    }
  }
  for (RankAccount& rank : account.ranks) {
    rank.fastest_in = in[rank.rank].fastest();
    rank.fastest_out = out[rank.rank].fastest();
  }
}

TimeSpent mean_of(const std::vector<RankAccount>& ranks) {
  TimeSpent mean;
  for (auto part : {&TimeSpent::forward, &TimeSpent::backward, &TimeSpent::optimizer, &TimeSpent::network, &TimeSpent::waiting,
                    &TimeSpent::other}) {
    for (const RankAccount& rank : ranks) mean.*part += rank.spent.*part / static_cast<double>(ranks.size());
  }
  return mean;
}

std::vector<std::string> notes_of(const RunEvents& run) {
  struct Note {
    Instant first;
    std::set<int> ranks;
  };
  std::unordered_map<std::string, Note> by_line;
  for (const RankEvents& rank : run.ranks) {
    for (const Event& event : rank.events) {
      if (event.kind != EventKind::note) continue;
      const auto [found, is_new] = by_line.try_emplace(run.name_of(event), Note{event.begin, {}});
      found->second.first = std::min(found->second.first, event.begin);
      found->second.ranks.insert(rank.who.rank);
    }
  }
  std::vector<std::pair<std::string, Note>> sorted(by_line.begin(), by_line.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.first, a.first) < std::tie(b.second.first, b.first);
  });
  std::vector<std::string> notes;
  for (const auto& [line, note] : sorted) {
    if (notes.size() == kMostNotes) {
      notes.push_back(fmt::format("and {} more", sorted.size() - kMostNotes));
      break;
    }
    notes.push_back(fmt::format("rank{} {}, {:.2f} s: {}", note.ranks.size() > 1 ? "s" : "", fmt::join(note.ranks, ", "),
                                Seconds(note.first.time_since_epoch()).count(), line));
  }
  return notes;
}

}  // namespace

Account account_of(const RunEvents& run, const exchange::ExchangePlan* plan) {
  Account account;
  Tensors tensors(plan);
  double on_the_way = 0, hidden = 0;
  for (const RankEvents& rank : run.ranks) {
    const MemberTimes member(rank);
    account.steps = std::max(account.steps, member.account.steps);
    on_the_way += member.on_the_way.seconds();
    hidden += member.account.hidden.value_or(0) * member.on_the_way.seconds();
    tensors.add(run, rank, member);
    for (const LinkAccount& link : links_into(rank, member.account.spent.whole())) account.links.push_back(link);
    account.ranks.push_back(member.account);
  }
  tell_fastest(run, account);
  std::sort(account.links.begin(), account.links.end(),
            [](const LinkAccount& a, const LinkAccount& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  account.mean = mean_of(account.ranks);
  if (on_the_way > 0) account.hidden = hidden / on_the_way;
  account.tensors = tensors.means();
  account.remarks = run.remarks;
  account.notes = notes_of(run);
  account.clocks = run.clocks;
  return account;
}

}  // namespace shoal::observe
