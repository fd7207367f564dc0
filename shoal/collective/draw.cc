#include "shoal/collective/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "shoal/collective/congestion.h"
#include "shoal/collective/unroll.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/topo/facts.h"
#include "shoal/topo/layout.h"
#include "shoal/topo/paper.h"

namespace shoal::collective {

namespace {

using topo::Point;
using Edge = std::pair<std::uint32_t, std::uint32_t>;   // from rank, to rank

constexpr std::size_t kMostPanels = 16;
constexpr std::uint32_t kNoRank = 0xffffffff;
constexpr std::size_t kFewPanels = 4;                     // may be this big; more of them are smaller
constexpr double kBig = 620, kSmall = 280;
constexpr double kTop = 48, kMargin = 28, kCaption = 24, kApart = 24, kWidest = 1100;
constexpr double kAside = 44, kBelow = 52, kRadius = 11, kLeastNamed = 9;
constexpr const char* kArrows = R"(<style>.up,.down{stroke-width:1.6;fill:none}.up{stroke:#c2571a}.down{stroke:#0b6e99}.arrow-up{fill:#c2571a}.arrow-down{fill:#0b6e99}
.inside{font-size:11px}@media (prefers-color-scheme:dark){.up{stroke:#f0884a}.down{stroke:#3f9dc6}.arrow-up{fill:#f0884a}.arrow-down{fill:#3f9dc6}}</style>
<defs><marker id="up" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path class="arrow-up" d="M0 0L8 4L0 8z"/></marker>
<marker id="down" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path class="arrow-down" d="M0 0L8 4L0 8z"/></marker></defs>
)";

struct Ways {                          // of one chunk
  std::vector<Edge> up, down;          // contributions and sums; results
};

// By chunk. What is received into a window is on its way to be added; so is what is added at once.
std::vector<Ways> ways_of(const Program& program) {
  std::uint64_t ops = 0;
  for (const auto& lanes : program.lanes) {
    for (const Lane& lane : lanes) {
      for (const Loop& loop : lane) ops += std::uint64_t{loop.times} * loop.ops.size();
    }
  }
  if (ops > kMaxInstances || program.chunks > kMaxInstances) {
    throw Error(Code::unsupported, fmt::format("more than {} ops to draw", kMaxInstances), "program " + program.name);
  }
  std::vector<Ways> ways(program.chunks);
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    for (const Lane& lane : program.lanes[rank]) {
      for (const Loop& loop : lane) {
        for (const Op& op : loop.ops) {
          const bool adds = op.kind == OpKind::receive_reduce || (op.kind == OpKind::receive && op.target.buffer == Buffer::scratch);
          if (!adds && op.kind != OpKind::receive) continue;
          for (std::uint32_t i = 0; i < loop.times; ++i) {
            Ways& way = ways[chunk_of(program, op, i)];
            (adds ? way.up : way.down).emplace_back(peer_of(program, op, i), rank);
          }
        }
      }
    }
  }
  return ways;
}

// The one circle that everything goes round, from rank 0; empty if there is none.
std::vector<std::uint32_t> circle_of(const std::vector<Ways>& ways, std::uint32_t ranks) {
  std::vector<std::uint32_t> next(ranks, kNoRank);
  for (const Ways& way : ways) {
    for (const auto* edges : {&way.up, &way.down}) {
      for (const auto& [from, to] : *edges) {
        if (next[from] != kNoRank && next[from] != to) return {};
        next[from] = to;
      }
    }
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t rank = 0; order.size() < ranks && next[rank] != kNoRank; rank = next[rank]) {
    order.push_back(rank);
    if (next[rank] == 0) break;
  }
  return ranks >= 3 && order.size() == ranks && next[order.back()] == 0 ? order : std::vector<std::uint32_t>{};
}

// Whom each rank hangs on, where the edges, turned to point at children, are a tree of all ranks; its root hangs on nobody.
std::optional<std::vector<std::uint32_t>> spanning_tree_of(const std::vector<Edge>& edges, std::uint32_t ranks, bool up) {
  std::vector<std::uint32_t> parent(ranks, kNoRank);
  for (const auto& [from, to] : edges) {
    if (std::exchange(parent[up ? from : to], up ? to : from) != kNoRank) return std::nullopt;
  }
  if (std::count(parent.begin(), parent.end(), kNoRank) != 1) return std::nullopt;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {      // no circle: every way up ends
    std::uint32_t steps = 0;
    for (std::uint32_t at = rank; parent[at] != kNoRank; at = parent[at]) {
      if (++steps > ranks) return std::nullopt;
    }
  }
  return parent;
}

struct Picture {
  std::vector<Point> at;               // [rank], pixels within the picture
  Ways ways;
  bool round = false;                  // everything goes one way round
  double radius = kRadius, width = 0, height = 0;
};

struct Panel {
  std::string caption;
  std::vector<Picture> pictures;       // beside each other: one, or the way up and the way down where they differ
  double width() const {
    double sum = 0;
    for (const Picture& picture : pictures) sum += picture.width;
    return sum;
  }
  double height() const {
    double most = 0;
    for (const Picture& picture : pictures) most = std::max(most, picture.height);
    return most;
  }
};

// Leaves beside each other, parents above the middle of their children, within `most` pixels each way.
void lay_out_tree(Picture& picture, const std::vector<std::uint32_t>& parent, double most) {
  const std::size_t ranks = parent.size();
  std::vector<std::vector<std::uint32_t>> below(ranks);
  std::vector<std::uint32_t> order;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (parent[rank] == kNoRank)
      order.push_back(rank);
    else
      below[parent[rank]].push_back(rank);
  }
  std::vector<double> depth(ranks, 0);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::uint32_t rank = order[k];                    // by value: `order` grows
    for (const std::uint32_t child : below[rank]) depth[child] = depth[rank] + 1, order.push_back(child);
  }
  picture.at.assign(ranks, {});
  double leaves = 0;
  const auto place = [&](auto& self, std::uint32_t rank) -> void {
    for (const std::uint32_t child : below[rank]) self(self, child);
    picture.at[rank].x = below[rank].empty() ? leaves++ : (picture.at[below[rank].front()].x + picture.at[below[rank].back()].x) / 2;
  };
  place(place, order[0]);
  const double deepest = *std::max_element(depth.begin(), depth.end());
  const double aside = std::min(kAside, most / std::max(leaves - 1, 1.0)), down = std::min(kBelow, most / std::max(deepest, 1.0));
  picture.radius = std::min({kRadius, 0.36 * down, leaves > 1 ? 0.42 * aside : kRadius});
  for (std::uint32_t rank = 0; rank < ranks; ++rank) picture.at[rank] = {kMargin + picture.at[rank].x * aside, kCaption + kMargin + depth[rank] * down};
  picture.width = 2 * kMargin + (leaves - 1) * aside;
  picture.height = kCaption + 2 * kMargin + deepest * down;
}

// Clockwise from the top.
void lay_out_circle(Picture& picture, const std::vector<std::uint32_t>& order) {
  const double count = static_cast<double>(order.size());
  const double radius = std::clamp(count * 8, 44.0, 280.0);
  picture.radius = std::min(kRadius, 2.4 * radius / count);
  picture.at.assign(order.size(), {});
  for (std::size_t k = 0; k < order.size(); ++k) {
    const double turn = 2 * std::numbers::pi * static_cast<double>(k) / count;
    picture.at[order[k]] = {kMargin + radius * (1 + std::sin(turn)), kCaption + kMargin + radius * (1 - std::cos(turn))};
  }
  picture.width = 2 * (kMargin + radius);
  picture.height = kCaption + picture.width;
}

class Drawing {
 public:
  Drawing(const Program& program, const topo::Topology* topology) : program_(program), topology_(topology) {
    const std::vector<Ways> ways = ways_of(program);
    std::vector<std::uint32_t> shown;
    for (std::uint32_t chunk = 0; chunk < program.chunks; ++chunk) {
      if (!is_empty(program, chunk)) shown.push_back(chunk);
      all_ += share(chunk);
    }
    if (const std::vector<std::uint32_t> circle = circle_of(ways, program.ranks); !circle.empty()) {
      Panel& panel = panels_.emplace_back();
      Picture& picture = panel.pictures.emplace_back();
      picture.round = true;
      panel.caption = fmt::format("{}, each the whole way round", show_count(shown.size(), "chunks"));
      for (std::size_t k = 0; k < circle.size(); ++k) {
        const Edge edge{circle[k], circle[(k + 1) % circle.size()]};
        if (adds(program.collective)) picture.ways.up.push_back(edge);
        if (program.collective == Collective::all_reduce || !adds(program.collective)) picture.ways.down.push_back(edge);
      }
      lay_out_circle(picture, circle);
      return;
    }
    std::stable_sort(shown.begin(), shown.end(), [&](std::uint32_t a, std::uint32_t b) { return share(a) > share(b); });
    if (shown.size() > kMostPanels) more_ = shown.size() - kMostPanels, shown.resize(kMostPanels);
    const double rate = topology == nullptr || program.ranks == 1 ? 0 : congestion(program, *topology).rate;
    const double most = shown.size() <= kFewPanels ? kBig : kSmall;
    for (const std::uint32_t chunk : shown) {
      Panel& panel = panels_.emplace_back();
      panel.caption = fmt::format("chunk {}: {:.3g} %", chunk, 100 * share(chunk) / all_);
      if (rate > 0) panel.caption += ", " + show_rate(*topology, rate * share(chunk) / all_);
      panel.pictures = pictures(ways[chunk], most);
    }
  }

  std::string svg() const {
    double x = kMargin, y = kTop, row = 0, width = 0;
    std::string text;
    for (const Panel& panel : panels_) {
      const double wide = std::max(panel.width(), 7.0 * static_cast<double>(panel.caption.size()));
      if (x > kMargin && x + wide > kWidest) x = kMargin, y += std::exchange(row, 0) + kApart;
      text += fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n{}</g>\n", x, y, drawn(panel, wide));
      row = std::max(row, panel.height());
      x += wide + kApart;
      width = std::max(width, x);
    }
    y += row + kApart;
    if (more_ > 0) text += fmt::format("<text class=\"faint\" x=\"20\" y=\"{:.1f}\">and {} more</text>\n", y, show_count(more_, "chunks")), y += kApart;
    text += legend(y);
    const std::string title = fmt::format("{}: {} of {}, {}", program_.name, name(program_.collective), show_count(program_.ranks, "ranks"),
                                          show_count(program_.chunks, "chunks"));
    return topo::svg_paper(title, std::max(width + kMargin - kApart, 420.0), y + kMargin) + kArrows + text + "</svg>\n";
  }

 private:
  double share(std::uint32_t chunk) const { return program_.shares.empty() ? 1 : program_.shares[chunk]; }

  std::vector<Picture> pictures(const Ways& ways, double most) const {
    const auto down = spanning_tree_of(ways.down, program_.ranks, false), up = spanning_tree_of(ways.up, program_.ranks, true);
    std::vector<Picture> made(1);
    made[0].ways = ways;
    if (up && down && *up != *down) {
      made.resize(2);
      made[0].ways.down.clear();
      made[1].ways.down = ways.down;
      lay_out_tree(made[0], *up, most);
      lay_out_tree(made[1], *down, most);
    } else if (up || down) {
      lay_out_tree(made[0], down ? *down : *up, most);
    } else {
      std::vector<std::uint32_t> order(program_.ranks);
      std::iota(order.begin(), order.end(), 0);
      lay_out_circle(made[0], order);
    }
    return made;
  }

  std::string drawn(const Panel& panel, double wide) const {
    std::string text = fmt::format("<text class=\"ink\" x=\"{:.1f}\" y=\"12\" text-anchor=\"middle\">{}</text>\n", wide / 2, topo::escaped(panel.caption));
    double x = (wide - panel.width()) / 2;
    for (const Picture& picture : panel.pictures) {
      text += fmt::format("<g transform=\"translate({:.1f} 0)\">\n{}{}{}</g>\n", x, arrows(picture, picture.ways.up, "up"),
                          arrows(picture, picture.ways.down, "down"), discs(picture));
      x += picture.width;
    }
    return text;
  }

  std::string discs(const Picture& picture) const {
    std::string text;
    for (std::uint32_t rank = 0; rank < program_.ranks; ++rank) {
      const Point at = picture.at[rank];
      const std::string title = topology_ == nullptr ? fmt::format("rank {}", rank) : topo::escaped(topology_->hosts[rank]);
      text += fmt::format("<circle class=\"host\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"><title>{}</title></circle>\n", at.x, at.y, picture.radius, title);
      if (picture.radius < kLeastNamed) continue;
      text += fmt::format("<text class=\"inside\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", at.x, at.y + 4, rank);
    }
    return text;
  }

  // From disc to disc, each kind on its own side of the line between them, whichever way it points.
  static std::string arrows(const Picture& picture, std::vector<Edge> edges, const char* kind) {
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    std::string text;
    for (const auto& [from, to] : edges) {
      const Point a = picture.at[from], b = picture.at[to];
      const double length = std::max(std::hypot(b.x - a.x, b.y - a.y), 1e-9), ux = (b.x - a.x) / length, uy = (b.y - a.y) / length;
      const double side = (kind[0] == 'u' ? 0.28 : -0.28) * picture.radius * (picture.round || (ux != 0 ? ux : uy) > 0 ? 1 : -1), gap = picture.radius + 2;
      text += fmt::format("<path class=\"{0}\" marker-end=\"url(#{0})\" d=\"M{1:.1f} {2:.1f}L{3:.1f} {4:.1f}\"/>\n", kind, a.x + ux * gap - uy * side,
                          a.y + uy * gap + ux * side, b.x - ux * gap - uy * side, b.y - uy * gap + ux * side);
    }
    return text;
  }

  std::string legend(double y) const {
    std::string text;
    double x = 20;
    const auto entry = [&](const char* kind, const char* says) {
      text += fmt::format("<path class=\"{0}\" marker-end=\"url(#{0})\" d=\"M{1:.1f} {2:.1f}h32\"/>\n", kind, x, y) +
              fmt::format("<text class=\"ink\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 42, y + 4, says);
      x += 160;
    };
    if (adds(program_.collective)) entry("up", "what is added");
    const bool tells = program_.collective != Collective::reduce && program_.collective != Collective::reduce_scatter;
    if (tells) entry("down", adds(program_.collective) ? "the result" : "the data");
    return text;
  }

  const Program& program_;
  const topo::Topology* topology_;
  std::vector<Panel> panels_;
  std::size_t more_ = 0;               // chunks that are not shown
  double all_ = 0;                     // shares together
};

}  // namespace

std::string to_svg(const Program& program, const topo::Topology* topology) {
  if (program.ranks > kMostDrawnRanks) {
    throw Error(Code::unsupported, fmt::format("{} ranks; at most {} are drawn", program.ranks, kMostDrawnRanks), "program " + program.name);
  }
  if (topology != nullptr && topology->hosts.size() != program.ranks) {
    throw Error(Code::invalid_argument, fmt::format("{} hosts for a program of {} ranks", topology->hosts.size(), program.ranks), topology->name);
  }
  return Drawing(program, topology).svg();
}

}  // namespace shoal::collective
