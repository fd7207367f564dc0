#include "shoal/topo/draw.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "shoal/core/text.h"
#include "shoal/topo/facts.h"
#include "shoal/topo/layout.h"
#include "shoal/topo/paper.h"

namespace shoal::topo {
namespace {

constexpr double kMargin = 56, kTitle = 40, kLegendRow = 20, kLeastWidth = 480, kBand = 1.15;
constexpr std::size_t kMostNamed = 200, kMostLabelled = 40, kMostLegend = 6;

struct Band {  // of rates that differ by measurement at most
  double least = 1, most = 1;
  std::size_t lines = 0;
};

// Both directions between two nodes, parallel links added up.
struct Line {
  double there = 0, back = 0;  // bytes/s from the lower node, to it
  bool wraps = false;
  double least() const { return there == 0 ? back : back == 0 ? there : std::min(there, back); }
};
using Lines = std::map<std::pair<Node, Node>, Line>;

Lines lines_of(const Topology& topology, const Layout& layout) {
  Lines lines;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    Line& line = lines[std::minmax({link.from, link.to})];
    (link.from < link.to ? line.there : line.back) += link.rate;
    line.wraps = !layout.wraps.empty() && layout.wraps[i];
  }
  return lines;
}

class Drawing {
 public:
  explicit Drawing(const Topology& topology)
      : topology_(topology), layout_(layout(topology)), lines_(lines_of(topology, layout_)) {
    const bool grid = layout_.form == Layout::Form::grid;
    const std::size_t nodes = topology.nodes();
    named_ = nodes <= kMostNamed && layout_.nearest == 1;
    inside_ = grid && named_;
    unit_ = (!grid ? (nodes <= 60 ? 84 : 64) : inside_ ? 56 : nodes <= 1100 ? 24 : 12) / layout_.nearest;
    radius_ = grid ? 0.32 * unit_ * layout_.nearest : nodes <= 60 ? 10 : 7;
    Point least{0, 0}, most{0, 0};
    if (!layout_.at.empty()) least = most = layout_.at[0];
    for (const Point& at : layout_.at) {
      least = {std::min(least.x, at.x), std::min(least.y, at.y)};
      most = {std::max(most.x, at.x), std::max(most.y, at.y)};
    }
    const double wide = (most.x - least.x) * unit_ + 2 * kMargin;
    width_ = std::max(wide, kLeastWidth);
    origin_ = {(width_ - wide) / 2 + kMargin - least.x * unit_, kTitle + kMargin - least.y * unit_};
    below_ = kTitle + (most.y - least.y) * unit_ + 2 * kMargin;

    std::vector<double> rates;
    for (const auto& [ends, line] : lines_) rates.push_back(line.least());
    std::sort(rates.begin(), rates.end());
    for (const double rate : rates) {
      if (bands_.empty() || rate > kBand * bands_.back().least) bands_.push_back({rate, rate, 0});
      bands_.back().most = rate;
      ++bands_.back().lines;
    }
    for (const Band& band : bands_) usual_ = band.lines > usual_.lines ? band : usual_;
  }

  std::string svg() const {
    const double height = below_ + kLegendRow * static_cast<double>(std::min(bands_.size(), kMostLegend)) + 16;
    return svg_paper(topology_.name.empty() ? "topology" : topology_.name, width_, height) + links() + nodes() + rates() + legend() + "</svg>\n";
  }

 private:
  Point place(Node node) const { return {origin_.x + layout_.at[node].x * unit_, origin_.y + layout_.at[node].y * unit_}; }
  // 1.2 to 6 pixels, by the logarithm between the slowest and the fastest.
  double thickness(double rate) const {
    const double thin = unit_ < 20 ? 0.5 : 1;
    if (bands_.size() < 2) return 2 * thin;
    return thin * (1.2 + 4.8 * std::log(rate / bands_.front().least) / std::log(bands_.back().most / bands_.front().least));
  }
  bool usual(double rate) const { return rate >= usual_.least && rate <= usual_.most; }
  bool slow(double rate) const { return bands_.size() > 1 && rate <= bands_.front().most && !usual(rate); }

  std::string links() const {
    std::map<std::pair<double, bool>, std::string> paths;  // one for each thickness: big grids stay small
    for (const auto& [ends, line] : lines_) {
      const Point a = place(ends.first), b = place(ends.second);
      std::string& path = paths[{std::round(thickness(line.least()) * 10) / 10, slow(line.least())}];
      if (!line.wraps) {
        path += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", a.x, a.y, b.x, b.y);
        continue;
      }
      // Around the back: a stub out of each side.
      const double length = std::hypot(b.x - a.x, b.y - a.y), stub = 0.62 * unit_ * layout_.nearest / length;
      path += fmt::format("M{:.1f} {:.1f}l{:.1f} {:.1f}M{:.1f} {:.1f}l{:.1f} {:.1f}", a.x, a.y, (a.x - b.x) * stub,
                          (a.y - b.y) * stub, b.x, b.y, (b.x - a.x) * stub, (b.y - a.y) * stub);
    }
    std::string text;
    for (const auto& [look, path] : paths)
      text += fmt::format("<path class=\"link{}\" stroke-width=\"{:.1f}\" d=\"{}\"/>\n", look.second ? " slow" : "", look.first,
                          path);
    return text;
  }

  std::string nodes() const {
    std::string shapes, names;
    for (Node node = 0; node < topology_.nodes(); ++node) {
      const Point at = place(node);
      const std::string name = escaped(topology_.node_name(node));
      if (node < topology_.hosts.size()) {
        shapes += fmt::format("<circle class=\"host\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"><title>{}</title></circle>\n",
                              at.x, at.y, radius_, name);
      } else {
        shapes += fmt::format(
            "<rect class=\"switch\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
            "rx=\"3\"><title>{}</title></rect>\n",
            at.x - radius_, at.y - radius_, 2 * radius_, 2 * radius_, name);
      }
      if (!named_) continue;
      const bool above = layout_.form == Layout::Form::tree && node >= topology_.hosts.size();
      if (inside_) {
        names += fmt::format("<text class=\"inside\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", at.x,
                             at.y + 4, name);
      } else {
        names += fmt::format("<text class=\"ink name\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", at.x,
                             above ? at.y - radius_ - 6 : at.y + radius_ + 14, name);
      }
    }
    return shapes + names;
  }

  // At the lines that differ from most, where there are few.
  std::string rates() const {
    std::string text;
    if (lines_.size() - usual_.lines > kMostLabelled) return text;
    for (const auto& [ends, line] : lines_) {
      if (usual(line.least())) continue;
      const Point a = place(ends.first), b = place(ends.second);
      const bool alike = line.there == 0 || line.back == 0 || std::max(line.there, line.back) <= kBand * line.least();
      const std::string shown = alike
                                    ? show_rate(topology_, line.least())
                                    : fmt::format("{} / {}", show_rate(topology_, line.there), show_rate(topology_, line.back));
      text += fmt::format(
          "<text class=\"faint rate\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"11\">{}</text>\n",
          (a.x + b.x) / 2, (a.y + b.y) / 2 - 3, shown);
    }
    return text;
  }

  // The slowest bands; where there are too many for a row each, the rest as one.
  std::string legend() const {
    std::string text;
    double y = below_;
    for (std::size_t i = 0; i < std::min(bands_.size(), kMostLegend); ++i, y += kLegendRow) {
      Band band = bands_[i];
      for (std::size_t k = i + 1; k < bands_.size() && i + 1 == kMostLegend; ++k)
        band = {band.least, bands_[k].most, band.lines + bands_[k].lines};
      const std::string least = show_rate(topology_, band.least), most = show_rate(topology_, band.most);
      text += fmt::format(
          "<path class=\"link{}\" stroke-width=\"{:.1f}\" d=\"M20 {:.1f}h36\"/>\n<text class=\"ink\" x=\"66\" y=\"{:.1f}\">{}, "
          "{}</text>\n",
          slow(band.most) ? " slow" : "", thickness(band.most), y, y + 4, least == most ? least : least + " to " + most,
          show_count(band.lines, "lines"));
    }
    return text;
  }

  const Topology& topology_;
  const Layout layout_;
  const Lines lines_;
  bool named_ = false, inside_ = false;  // nodes have their names; inside the discs
  double unit_ = 0, radius_ = 0, width_ = 0, below_ = 0;  // pixels
  Point origin_;
  std::vector<Band> bands_;            // the slowest first
  Band usual_;                         // the one with most lines
};

}  // namespace

std::string to_svg(const Topology& topology) { return Drawing(topology).svg(); }

}  // namespace shoal::topo
