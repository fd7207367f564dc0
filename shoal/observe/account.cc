#include "shoal/observe/account.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <unordered_map>

#include "shoal/observe/intervals.h"

namespace shoal::observe {
namespace {

double seconds_of(const Event& event) { return Seconds(event.end - event.begin).count(); }

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
class Member {
 public:
  Member(const RankEvents& rank) {
    account.rank = rank.who.rank;
    account.host = rank.who.host;
    for (const Event& event : rank.events) {
      if (heading_of(event) >= 0) edges_of(event);
      if (event.kind == EventKind::exposed) exposed.add(event.begin, event.end);
      if (event.kind == EventKind::exchange) on_the_way.add(event.begin, event.end);
      count_step(event);
    }
    spend();
    account.steps = static_cast<std::int64_t>(optimizer_steps_.empty() ? backward_steps_.size() : optimizer_steps_.size());
    if (on_the_way.seconds() > 0) account.hidden = 1 - on_the_way.overlap(exposed) / on_the_way.seconds();
  }

  RankAccount account;
  Intervals exposed, on_the_way;

 private:
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
    if (event.step < 0) return;
    if (event.kind == EventKind::optimizer) optimizer_steps_.insert(event.step);
    if (event.kind == EventKind::backward) backward_steps_.insert(event.step);
  }

  // Walks over the edges; between two of them the strongest open heading has the time.
  void spend() {
    std::stable_sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
    std::array<int, kHeadings> open{};
    std::map<int, int> waited_peers;
    const std::array<double TimeSpent::*, kHeadings> place = {&TimeSpent::forward, &TimeSpent::backward, &TimeSpent::optimizer,
                                                              &TimeSpent::network, &TimeSpent::waiting};
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      const Edge& edge = edges_[i];
      open[static_cast<std::size_t>(edge.heading)] += edge.opens;
      if (edge.heading == kWaiting) {
        int& waits = waited_peers[edge.peer];
        waits += edge.opens;
        if (waits == 0) waited_peers.erase(edge.peer);
      }
      if (i + 1 == edges_.size()) break;
      const double seconds = Seconds(edges_[i + 1].at - edge.at).count();
      const auto strongest = std::find_if(open.rbegin(), open.rend(), [](int count) { return count > 0; });
      if (strongest == open.rend()) {
        account.spent.other += seconds;
        continue;
      }
      account.spent.*place[static_cast<std::size_t>(open.rend() - strongest - 1)] += seconds;
      if (open[kWaiting] > 0 && seconds > 0) account.waited_for[waited_peers.begin()->first] += seconds;
    }
    edges_ = {};
  }

  std::vector<Edge> edges_;
  std::set<std::int64_t> optimizer_steps_, backward_steps_;
};

class Tensors {
 public:
  explicit Tensors(const exchange::ExchangePlan* plan) {
    if (plan == nullptr) return;
    for (const exchange::Unit& unit : plan->units) {
      TensorAccount& tensor = find(plan->name_of(unit));
      tensor.way = unit.way;
      tensor.bytes = static_cast<double>(plan->bytes_of(unit));
      tensor.predicted_exposed = unit.predicted_exposed;
    }
  }

  void add(const RunEvents& run, const RankEvents& rank, const Member& member) {
    for (const Event& event : rank.events) {
      if (event.kind == EventKind::exchange) {
        TensorAccount& tensor = find(run.name_of(event));
        tensor.bytes = event.value;
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
  std::map<int, std::pair<double, Intervals>> by_peer;
  for (const Event& event : rank.events) {
    if (event.kind != EventKind::received) continue;
    auto& [bytes, busy] = by_peer[event.peer];
    bytes += event.value;
    busy.add(event.begin, event.end);
  }
  std::vector<LinkAccount> links;
  for (const auto& [peer, sums] : by_peer) {
    links.push_back({peer, rank.who.rank, sums.first, seconds, sums.second.seconds()});
  }
  return links;
}

TimeSpent mean_of(const std::vector<RankAccount>& ranks) {
  TimeSpent mean;
  for (auto part : {&TimeSpent::forward, &TimeSpent::backward, &TimeSpent::optimizer, &TimeSpent::network, &TimeSpent::waiting,
                    &TimeSpent::other}) {
    for (const RankAccount& rank : ranks) mean.*part += rank.spent.*part / static_cast<double>(ranks.size());
  }
  return mean;
}

}  // namespace

Account account_of(const RunEvents& run, const exchange::ExchangePlan* plan) {
  Account account;
  Tensors tensors(plan);
  double on_the_way = 0, hidden = 0;
  for (const RankEvents& rank : run.ranks) {
    const Member member(rank);
    account.steps = std::max(account.steps, member.account.steps);
    on_the_way += member.on_the_way.seconds();
    hidden += member.account.hidden.value_or(0) * member.on_the_way.seconds();
    tensors.add(run, rank, member);
    for (const LinkAccount& link : links_into(rank, member.account.spent.whole())) account.links.push_back(link);
    account.ranks.push_back(member.account);
  }
  std::sort(account.links.begin(), account.links.end(),
            [](const LinkAccount& a, const LinkAccount& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  account.mean = mean_of(account.ranks);
  if (on_the_way > 0) account.hidden = hidden / on_the_way;
  account.tensors = tensors.means();
  account.remarks = run.remarks;
  account.clocks = run.clocks;
  return account;
}

}  // namespace shoal::observe
