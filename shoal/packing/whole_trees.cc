#include "shoal/packing/whole_trees.h"

#include <algorithm>
#include <cmath>

namespace shoal::packing {

namespace {

constexpr std::uint32_t kMostTreeSteps = 200000;   // of the search, each a look at all hosts
constexpr double kRounding = 1e-9;

class TreeSearch {
 public:
  TreeSearch(const Network& network, const Packing& proof, const std::vector<Tree>& candidates, double unit, bool once)
      : network_(network), proof_(proof), once_(once), copies_(candidates.size(), 0), best_(copies_) {
    double worth = 0;
    for (std::size_t a = 0; a < network.arcs().size(); ++a) {
      const double rate = network.arcs()[a].rate;
      left_.push_back(static_cast<std::uint32_t>(std::min(rate / unit + kRounding, 1e6)));
      worth += proof.prices[a] * rate;
      worth_left_ += proof.prices[a] * left_.back();
    }
    cheapest_ = worth / proof.bound;
    for (const Tree& tree : candidates) {
      loads_.push_back(load(network, tree));
      costs_.push_back(0);
      for (const auto& [arc, times] : loads_.back()) costs_.back() += times * proof.prices[arc];
    }
    in_.assign(network.nodes(), 0);
    out_.assign(network.nodes(), 0);
    for (std::size_t a = 0; a < left_.size(); ++a) leave(a, left_[a]);
    most_ = room();
  }

  std::vector<std::uint32_t> best() {
    descend(0);
    return best_;
  }

 private:
  void leave(std::size_t arc, std::int64_t units) {
    in_[network_.arcs()[arc].to] += units;
    out_[network_.arcs()[arc].from] += units;
  }
  // How many units more at most.
  std::int64_t room() const {
    auto most = static_cast<std::int64_t>(std::floor(worth_left_ / cheapest_ + 1e-6));
    for (Node host = 0; host < network_.hosts(); ++host) {
      if (host == proof_.root && proof_.demand != Demand::all_reduce) continue;
      if (goes_down(proof_.demand)) most = std::min(most, in_[host]);
      if (goes_up(proof_.demand)) most = std::min(most, out_[host]);
    }
    return most;
  }
  std::uint32_t fits(std::size_t tree) const {
    std::uint32_t times = once_ ? 1 : 1000000;
    for (const auto& [arc, each] : loads_[tree]) times = std::min(times, left_[arc] / each);
    return times;
  }
  void put(std::size_t tree, std::int64_t copies) {   // negative: takes away
    copies_[tree] = static_cast<std::uint32_t>(copies_[tree] + copies);
    count_ += copies;
    worth_left_ -= static_cast<double>(copies) * costs_[tree];
    for (const auto& [arc, times] : loads_[tree]) {
      left_[arc] = static_cast<std::uint32_t>(left_[arc] - copies * times);
      leave(arc, -copies * times);
    }
  }

  void descend(std::size_t next) {
    ++steps_;
    if (count_ > best_count_) best_count_ = count_, best_ = copies_;
    for (std::size_t tree = next; tree < loads_.size(); ++tree) {
      if (++steps_ > kMostTreeSteps || best_count_ >= most_ || count_ + room() <= best_count_) return;
      for (std::int64_t copies = fits(tree); copies > 0; --copies) {
        put(tree, copies);
        descend(tree + 1);
        put(tree, -copies);
        if (steps_ > kMostTreeSteps || best_count_ >= most_) return;
      }
    }
  }

  const Network& network_;
  const Packing& proof_;
  const bool once_;
  std::vector<Load> loads_;                      // [tree]
  std::vector<double> costs_;                    // [tree], in the proof's prices
  std::vector<std::uint32_t> left_;              // [arc], units
  std::vector<std::int64_t> in_, out_;           // [node], units left of its arcs
  double worth_left_ = 0, cheapest_ = 1;
  std::vector<std::uint32_t> copies_, best_;
  std::int64_t count_ = 0, best_count_ = 0, most_ = 0;
  std::uint32_t steps_ = 0;
};

}  // namespace

std::vector<std::uint32_t> most_whole_trees(const Network& network, const Packing& proof, const std::vector<Tree>& candidates, double unit,
                                            bool once) {
  return TreeSearch(network, proof, candidates, unit, once).best();
}

}  // namespace shoal::packing
