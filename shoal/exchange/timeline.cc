#include "shoal/exchange/timeline.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>

namespace shoal::exchange {
namespace {

// Pieces of one unit that may go over the link from `at` on.
struct Batch {
  double at;
  std::uint32_t unit, pieces;
  bool sums;  // the second half: they come back from whoever added
};

class Link {
 public:
  // saved: of traits.saves, when backward begins.
  Link(std::span<const Work> units, Order order, const LinkTraits& traits, double saved)
      : units_(units), order_(order), traits_(traits), saved_(saved), left_(units.size()), arrived_(units.size()) {
    for (std::uint32_t u = 0; u < units.size(); ++u) {
      left_[u] = units[u].pieces;
      later_.push({units[u].ready, u, units[u].pieces, false});
    }
  }

  std::vector<double> run() {
    double queues = 0;  // when the next piece goes into the queues: as soon as there is room
    while (!later_.empty() || !waiting_.empty()) {
      queues = std::max(queues, now_ - traits_.queued);
      if (waiting_.empty()) queues = std::max(queues, later_.top().at);
      for (; !later_.empty() && later_.top().at <= queues; later_.pop()) waiting_.push(later_.top());
      idle_until(queues);
      send_one();
    }
    return std::move(arrived_);
  }
  // What it has saved up when it goes on at `at`, having done all.
  double saved(double at) {
    idle_until(at);
    return saved_;
  }

 private:
  void idle_until(double at) {
    saved_ = std::min(traits_.saves, saved_ + std::max(0.0, at - now_));
    now_ = std::max(now_, at);
  }

  void send_one() {
    Batch batch = waiting_.top();
    waiting_.pop();
    const Work& work = units_[batch.unit];
    const bool halves = work.add > 0;
    const double ways = halves ? 2 : 1, parts = work.pieces * ways, made_up = std::min(saved_, work.bytes / parts);
    saved_ -= made_up;
    now_ += (work.link - work.latency) / parts - made_up;
    const double there = now_ + work.latency / ways;
    if (halves && !batch.sums) {
      adder_free_ = std::max(adder_free_, there) + work.add / work.pieces;
      later_.push({adder_free_, batch.unit, 1, true});
    } else if (--left_[batch.unit] == 0) {
      arrived_[batch.unit] = there + (waiting_.empty() ? 0 : work.behind);
    }
    if (--batch.pieces > 0) waiting_.push(batch);
  }

  struct Later {
    bool operator()(const Batch& a, const Batch& b) const { return std::tie(a.at, a.unit) > std::tie(b.at, b.unit); }
  };
  struct LessUrgent {
    std::span<const Work> units;
    Order order;
    bool operator()(const Batch& a, const Batch& b) const {
      if (order == Order::fifo) return std::tie(a.at, a.unit) > std::tie(b.at, b.unit);
      return std::tie(units[a.unit].priority, a.unit, a.at) > std::tie(units[b.unit].priority, b.unit, b.at);
    }
  };

  const std::span<const Work> units_;
  const Order order_;
  const LinkTraits traits_;
  double saved_;
  std::vector<std::uint32_t> left_;  // pieces that have not arrived
  std::vector<double> arrived_;
  double now_ = 0, adder_free_ = 0;
  std::priority_queue<Batch, std::vector<Batch>, Later> later_;
  std::priority_queue<Batch, std::vector<Batch>, LessUrgent> waiting_{LessUrgent{units_, order_}};
};

// The thread's part, once it is known what arrives when. By priority it takes all means that are here when the step begins, and again before it waits for one
// at a gate (python/shoal/steps.py); at a barrier one after another, as they were produced.
Timeline go_through(std::span<const Work> units, std::vector<double> arrived, double forward, double backward, Order order) {
  Timeline line;
  line.arrived = std::move(arrived);
  line.waited.resize(units.size());
  std::vector<std::uint32_t> gates(units.size());
  std::iota(gates.begin(), gates.end(), 0u);
  auto arrivals = gates;
  std::stable_sort(arrivals.begin(), arrivals.end(), [&](auto a, auto b) { return line.arrived[a] < line.arrived[b]; });
  // With a barrier all gates stand before the first layer.
  const auto stands_at = [&](std::uint32_t unit) { return order == Order::fifo ? 0 : std::clamp(units[unit].needed, 0.0, forward); };
  std::stable_sort(gates.begin(), gates.end(), [&](auto a, auto b) { return stands_at(a) < stands_at(b); });

  double thread = backward, done = 0;  // `done`: of forward
  std::vector<bool> taken(units.size());
  const auto take = [&](std::uint32_t unit) {
    const double before = thread;
    thread = std::max(thread, line.arrived[unit]) + units[unit].thread;
    line.waited[unit] = thread - before;
    taken[unit] = true;
  };
  auto next = arrivals.begin();
  const auto take_those_here = [&] {
    bool any = false;
    for (const double now = thread; order == Order::priority && next != arrivals.end() && line.arrived[*next] <= now; ++next) {
      if (!taken[*next]) take(*next), any = true;
    }
    return any;
  };
  take_those_here();
  for (const auto unit : gates) {
    if (taken[unit]) continue;
    thread += stands_at(unit) - done;
    done = stands_at(unit);
    while (!taken[unit]) {
      if (!take_those_here()) take(unit);
    }
  }
  line.seconds = thread + forward - done;
  return line;
}

}  // namespace

// In the steady state an iteration begins with what the one before has left, so that no more goes through the link than its rate: the most that a link
// has at the beginning and again at the end, by halving.
Timeline foresee(std::span<const Work> units, double forward, double backward, Order order, const LinkTraits& traits) {
  constexpr int kHalvings = 8;
  const auto begun_with = [&](double saved, Timeline& line) {
    Link link(units, order, traits, saved);
    line = go_through(units, link.run(), forward, backward, order);
    return link.saved(line.seconds + traits.besides) >= saved;  // and so it goes on
  };
  Timeline line;
  double least = 0;
  double most = std::min(traits.saves, std::accumulate(units.begin(), units.end(), 0.0, [](double sum, const Work& work) { return sum + work.bytes; }));
  if (begun_with(most, line)) return line;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (least + most) / 2;
    (begun_with(middle, line) ? least : most) = middle;
  }
  begun_with(least, line);
  return line;
}

}  // namespace shoal::exchange
