#include "shoal/collective/build_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "shoal/collective/author.h"
#include "shoal/collective/build.h"
#include "shoal/collective/hosts.h"
#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

using Children = std::vector<std::vector<std::uint32_t>>;  // [rank]

// Throws unless following `parent` leads every rank to the root.
Children children(const std::string& name, std::uint32_t ranks, std::uint32_t root, const std::vector<std::uint32_t>& parent) {
  const auto refuse = [&](const std::string& what) { throw Error(Code::invalid_argument, what, name); };
  if (root >= ranks) refuse(fmt::format("root {} of {} members", root, ranks));
  if (parent.size() != ranks) refuse(fmt::format("a tree over {} members in a program of {}", parent.size(), ranks));
  Children below(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank == root) continue;
    if (parent[rank] >= ranks) refuse(fmt::format("rank {} hangs on {}, of {} members", rank, parent[rank], ranks));
    below[parent[rank]].push_back(rank);
  }
  std::vector<std::uint32_t> reached{root};
  for (std::size_t k = 0; k < reached.size(); ++k) reached.insert(reached.end(), below[reached[k]].begin(), below[reached[k]].end());
  if (reached.size() < ranks) refuse(fmt::format("a tree from rank {} reaches {} of {} members", root, reached.size(), ranks));
  return below;
}

// Writes one chunk's way. Every transfer has a lane of its own at both ends, so that no child waits for another.
class Branches {
 public:
  // `windows`: of each rank, used so far.
  Branches(Author& author, Collective collective, std::uint32_t chunk, const DataTree& tree, std::vector<std::uint32_t>& windows)
      : author_(author), collective_(collective), chunk_(chunk), tree_(tree), windows_(windows) {}

  // Contributions to the root: where the sum is complete (the root's op).
  Mark up(const Children& below) {
    const std::vector<std::uint32_t> order = outward(below);
    std::vector<std::uint32_t> sends(order.size());           // [rank]: the lane in which it sends its sum
    Mark whole;
    for (auto rank = order.rbegin(); rank != order.rend(); ++rank) {
      Site sum = kInput;
      Mark added;
      for (std::size_t k = 0; k < below[*rank].size(); ++k) {
        const std::uint32_t child = below[*rank][k];
        const bool last = k + 1 == below[*rank].size();
        const bool room = collective_ == Collective::all_reduce || (last && *rank == tree_.root);
        const Site target = room ? kOutput : window(windows_[*rank]++);
        Op op = receive_reduce(child, sends[child], chunk_, sum, target);
        if (k > 0) op = after(std::move(op), added);
        op.completes = last && *rank == tree_.root;
        added = author_.add(*rank, author_.lane(*rank), std::move(op));
        sum = target;
      }
      if (*rank == tree_.root) {
        whole = added;
        continue;
      }
      sends[*rank] = author_.lane(*rank);
      Op op = send(tree_.up[*rank], chunk_, sum);
      author_.add(*rank, sends[*rank], below[*rank].empty() ? op : after(std::move(op), added));
    }
    return whole;
  }

  // The result from the root; `whole`: what it waits for there, nullptr if it is the root's input.
  void down(const Children& below, const Mark* whole) {
    std::vector<std::uint32_t> sends(below.size());           // [rank]: the lane in which its parent sends to it
    for (const std::uint32_t rank : outward(below)) {
      Mark has{};
      if (rank != tree_.root) {
        has = author_.add(rank, author_.lane(rank), receive(tree_.down[rank], sends[rank], chunk_, kOutput));
      } else if (whole != nullptr) {
        has = *whole;
      } else {
        author_.add(rank, author_.lane(rank), copy(chunk_, kInput, kOutput));
      }
      const bool own = rank == tree_.root && whole == nullptr;
      for (const std::uint32_t child : below[rank]) {
        sends[child] = author_.lane(rank);
        Op op = send(child, chunk_, own ? kInput : kOutput);
        author_.add(rank, sends[child], own ? std::move(op) : after(std::move(op), has));
      }
    }
  }

 private:
  std::vector<std::uint32_t> outward(const Children& below) const {
    std::vector<std::uint32_t> order{tree_.root};
    for (std::size_t k = 0; k < order.size(); ++k) order.insert(order.end(), below[order[k]].begin(), below[order[k]].end());
    return order;
  }

  Author& author_;
  const Collective collective_;
  const std::uint32_t chunk_;
  const DataTree& tree_;
  std::vector<std::uint32_t>& windows_;
};

// The chunk of each tree: one after another, or where every rank owns a part, the next of its root's.
std::vector<std::uint32_t> numbered(Collective collective, std::uint32_t ranks, const std::vector<DataTree>& trees) {
  std::vector<std::uint32_t> chunks, used(ranks, 0);
  for (const DataTree& tree : trees) {
    chunks.push_back(in_parts(collective) ? tree.root + ranks * used[tree.root]++ : static_cast<std::uint32_t>(chunks.size()));
  }
  return chunks;
}

}  // namespace

DataTree tree_of(const packing::Tree& packed, std::uint32_t ranks) {
  DataTree tree{packed.root, std::vector<std::uint32_t>(ranks, packed.root), std::vector<std::uint32_t>(ranks, packed.root)};
  for (const packing::Hop& hop : packed.up) tree.up[hop.from] = hop.to;
  for (const packing::Hop& hop : packed.down) tree.down[hop.to] = hop.from;
  return tree;
}

std::uint32_t share_of(double part) {
  constexpr std::uint32_t kShares = 1U << 20;
  return std::max(1U, static_cast<std::uint32_t>(std::lround(part * kShares)));
}

std::vector<DataTree> data_trees(const std::vector<packing::Tree>& packed, std::uint32_t ranks, double all) {
  std::vector<DataTree> trees;
  for (const packing::Tree& tree : packed) {
    trees.push_back(tree_of(tree, ranks));
    trees.back().share = share_of(tree.rate / all);
  }
  return trees;
}

double rate_of(const std::vector<packing::Tree>& packed) {
  double all = 0;
  for (const packing::Tree& tree : packed) all += tree.rate;
  return all;
}

Program tree_program(std::string name, Collective collective, std::uint32_t ranks, const std::vector<DataTree>& trees,
                     std::uint32_t root) {
  const bool goes_up = adds(collective), goes_down = collective != Collective::reduce && collective != Collective::reduce_scatter;
  const AddOrder order = goes_up ? AddOrder::tree : AddOrder::none;
  if (ranks == 1) return alone(std::move(name), collective, order);
  Author author(name, collective, ranks, order);
  author.root(root);
  const std::vector<std::uint32_t> chunks = numbered(collective, ranks, trees);
  std::uint32_t count = in_parts(collective) ? ranks : 1;
  for (const std::uint32_t chunk : chunks) count = std::max(count, in_parts(collective) ? chunk / ranks * ranks + ranks : chunk + 1);
  std::vector<std::uint32_t> shares(count, 0), windows(ranks, 0);
  for (std::size_t t = 0; t < trees.size(); ++t) {
    const DataTree& tree = trees[t];
    shares[chunks[t]] = tree.share;
    Branches branches(author, collective, chunks[t], tree, windows);
    Mark whole;
    if (goes_up) whole = branches.up(children(name, ranks, tree.root, tree.up));
    if (goes_down) branches.down(children(name, ranks, tree.root, tree.down), goes_up ? &whole : nullptr);
  }
  author.chunks(count);
  author.slots(*std::max_element(windows.begin(), windows.end()));
  if (!std::equal(shares.begin() + 1, shares.end(), shares.begin())) author.shares(std::move(shares));
  return author.take();
}

// The places 1, 2, ... in order as a binary tree: a place whose lowest set bit is b hangs on the one where that bit has gone into the next, or
// where there is none, to 0. Place 0 is the root. Of 8:
//
//     0 -- 4 -- 2 -- 1, 3        the other tree counts places from the end, or where N is odd, from 1 on
//            \- 6 -- 5, 7
std::vector<DataTree> double_binary_trees(std::uint32_t ranks) {
  std::vector<DataTree> trees(2);
  for (std::uint32_t number = 0; number < 2; ++number) {
    const auto rank_at = [&](std::uint32_t place) { return number == 0 ? place : ranks % 2 == 0 ? ranks - 1 - place : (place + 1) % ranks; };
    DataTree& tree = trees[number];
    tree.root = rank_at(0);
    tree.up.assign(ranks, 0);
    for (std::uint32_t place = 1; place < ranks; ++place) {
      const std::uint32_t bit = place & -place, above = (place ^ bit) | (bit << 1);
      tree.up[rank_at(place)] = rank_at(above < ranks ? above : place ^ bit);
    }
    tree.down = tree.up;
  }
  return trees;
}

Program double_binary_tree_all_reduce(std::uint32_t ranks) {
  Author("double_binary_tree", Collective::all_reduce, ranks, AddOrder::tree);  // refuses what is no number of members
  return tree_program("double_binary_tree", Collective::all_reduce, ranks, double_binary_trees(ranks));
}

Program hierarchical_all_reduce(const std::vector<std::uint32_t>& group_of) {
  constexpr std::uint64_t kMostTransfers = 1U << 20;
  const std::string name = "hierarchical";
  const auto ranks = static_cast<std::uint32_t>(group_of.size());
  if (ranks == 0) throw Error(Code::invalid_argument, "no group", name);
  if (ranks > kMaxRanks) throw Error(Code::invalid_argument, fmt::format("more than {} members", kMaxRanks), name);
  for (const std::uint32_t group : group_of) {
    if (group >= ranks) throw Error(Code::invalid_argument, fmt::format("group {} of {} members", group, ranks), name);
  }
  const std::vector<std::vector<std::uint32_t>> groups = members_by_host(group_of);
  std::uint64_t parts = 0;
  for (const auto& group : groups) {
    if (group.empty()) throw Error(Code::invalid_argument, "a group without members", name);
    parts = std::max<std::uint64_t>(parts, group.size());
  }
  if (parts * groups.size() * ranks > kMostTransfers) {
    throw Error(Code::invalid_argument, fmt::format("{} groups of up to {} of {} members: more than {} transfers", groups.size(), parts, ranks, kMostTransfers),
                name, "take grid");
  }
  std::vector<DataTree> trees;
  for (std::uint32_t part = 0; part < parts; ++part) {
    const auto head = [&](const std::vector<std::uint32_t>& group) { return group[part % group.size()]; };
    for (const auto& home : groups) {  // a share of each part is summed across groups at every group
      DataTree tree;
      tree.root = head(home);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const std::uint32_t near = head(groups[group_of[rank]]);
        tree.up.push_back(rank == near ? tree.root : near);
      }
      tree.down = tree.up;
      trees.push_back(std::move(tree));
    }
  }
  return tree_program(name, Collective::all_reduce, ranks, trees);
}

}  // namespace shoal::collective
