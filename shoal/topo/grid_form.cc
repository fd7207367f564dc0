#include "shoal/topo/grid_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::topo {
namespace {

constexpr std::size_t kMostForms = 8;  // dimensions, as generate.h has them

using ChipPlace = std::vector<std::uint32_t>;

// Reads one assignment of coordinates to hosts; `why` says what does not fit.
class GridReading {
 public:
  GridReading(const Topology& topology, std::vector<ChipPlace> at) : topology_(topology), at_(std::move(at)) {}

  std::optional<GridForm> read() {
    const std::size_t dimensions = at_[0].size();
    made_.sizes.assign(dimensions, 1);
    for (const ChipPlace& one : at_) {
      for (std::size_t d = 0; d < dimensions; ++d) made_.sizes[d] = std::max(made_.sizes[d], one[d] + 1);
    }
    std::uint64_t chips = 1;
    for (const std::uint32_t size : made_.sizes) chips = std::min<std::uint64_t>(chips * size, kMostNodes + 1);
    if (chips > kMostNodes) return no("its coordinates span more chips than there can be");
    made_.wraps.assign(dimensions, false);
    made_.chips.assign(chips, GridForm::kDead);
    for (Node host = 0; host < at_.size(); ++host) {
      Node& chip = made_.chips[number(at_[host])];
      if (chip != GridForm::kDead)
        return no(fmt::format("{} and {} have the same coordinates", topology_.hosts[chip], topology_.hosts[host]));
      chip = host;
    }
    std::set<std::pair<Node, Node>> linked;
    for (const Link& link : topology_.links) {
      if (!neighbours(link))
        return no(
            fmt::format("{} and {} are linked, but are no neighbours", topology_.hosts[link.from], topology_.hosts[link.to]));
      linked.emplace(link.from, link.to);
    }
    for (Node host = 0; host < at_.size(); ++host) {
      for (std::size_t d = 0; d < dimensions; ++d) {
        ChipPlace next = at_[host];
        if (++next[d] == made_.sizes[d]) {
          if (!made_.wraps[d]) continue;
          next[d] = 0;
        }
        const Node other = made_.chips[number(next)];
        if (other == GridForm::kDead || other == host) continue;
        for (const auto& [from, to] : {std::pair(host, other), std::pair(other, host)}) {
          if (!linked.contains({from, to}))
            return no(fmt::format("no link leads from {} to {}", topology_.hosts[from], topology_.hosts[to]));
        }
      }
    }
    return std::move(made_);
  }

  const std::string& why() const { return why_; }

 private:
  std::nullopt_t no(std::string why) {
    why_ = std::move(why);
    return std::nullopt;
  }

  std::size_t number(const ChipPlace& at) const {
    std::size_t number = 0;
    for (std::size_t d = 0; d < at.size(); ++d) number = number * made_.sizes[d] + at[d];
    return number;
  }

  // In one dimension. Notes whether that one wraps.
  bool neighbours(const Link& link) {
    const ChipPlace &a = at_[link.from], &b = at_[link.to];
    std::size_t differ = 0;
    for (std::size_t d = 0; d < a.size(); ++d) {
      const std::uint32_t apart = std::max(a[d], b[d]) - std::min(a[d], b[d]);
      if (apart == 0) continue;
      const bool round = apart > 1 && apart == made_.sizes[d] - 1;
      if (++differ > 1 || (apart > 1 && !round)) return false;
      if (round) made_.wraps[d] = true;
    }
    return differ == 1;
  }

  const Topology& topology_;
  const std::vector<ChipPlace> at_;
  GridForm made_;
  std::string why_;
};

std::optional<std::vector<ChipPlace>> places_by_name(const Topology& topology) {
  std::vector<ChipPlace> at;
  for (const std::string& host : topology.hosts) {
    at.push_back(coordinates_in(host));
    if (at.back().empty() || at.back().size() != at[0].size() || at.back().size() > kMostForms) return std::nullopt;
  }
  return at;
}

std::vector<ChipPlace> places_by_number(std::uint32_t hosts, const std::vector<std::uint32_t>& sizes) {
  std::vector<ChipPlace> at;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    ChipPlace place(sizes.size());
    std::uint32_t left = host;
    for (std::size_t d = sizes.size(); d-- > 0; left /= sizes[d]) place[d] = left % sizes[d];
    at.push_back(std::move(place));
  }
  return at;
}

// Sizes of at least 2 whose product is `hosts`, in every order, those of fewer dimensions first.
std::vector<std::vector<std::uint32_t>> products(std::uint32_t hosts) {
  std::vector<std::vector<std::uint32_t>> all, open{{}};
  for (std::size_t k = 0; k < open.size(); ++k) {
    std::uint32_t left = hosts;
    for (const std::uint32_t size : open[k]) left /= size;
    if (left == 1) {
      all.push_back(open[k]);
    } else if (open[k].size() < kMostForms) {
      for (std::uint32_t size = 2; size <= left; ++size) {
        if (left % size != 0) continue;
        open.push_back(open[k]);
        open.back().push_back(size);
      }
    }
  }
  std::ranges::stable_sort(all, {}, &std::vector<std::uint32_t>::size);
  return all;
}

}  // namespace

bool GridForm::is_whole() const { return std::ranges::find(chips, kDead) == chips.end(); }

std::vector<std::uint32_t> coordinates_in(const std::string& name) {
  std::vector<std::uint32_t> found;
  const char* at = name.data();
  const char* const end = at + name.size();
  while (at < end) {
    std::uint32_t value = 0;
    const auto [next, wrong] = std::from_chars(at, end, value);
    if (wrong != std::errc() || value >= kMostNodes || (next != end && (*next != '_' || next + 1 == end))) return {};
    found.push_back(value);
    at = next == end ? end : next + 1;
  }
  return found;
}

GridForm grid_form(const Topology& topology) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::invalid_argument, "is no grid: " + what, "topology " + topology.name);
  };
  const auto hosts = static_cast<std::uint32_t>(topology.hosts.size());
  if (hosts < 2) refuse("it has fewer than two hosts");
  if (!topology.switches.empty()) refuse(fmt::format("it has switches, as {}", topology.switches[0]));
  if (topology.links.empty()) refuse("it has no links");
  std::string why;
  if (auto at = places_by_name(topology)) {
    GridReading reading(topology, std::move(*at));
    if (std::optional<GridForm> made = reading.read()) return *made;
    why = reading.why();
  }
  for (const std::vector<std::uint32_t>& sizes : products(hosts)) {
    GridReading reading(topology, places_by_number(hosts, sizes));
    if (std::optional<GridForm> made = reading.read()) return *made;
  }
  refuse(why.empty() ? "neither names nor numbers of its hosts are coordinates of neighbours that its links join" : why);
  return {};
}

}  // namespace shoal::topo
