// The forecast drawn: speed-up over members on the left, an iteration by each way on the right. Plain SVG, no script.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/plan_report.h"
#include "shoal/core/text.h"

namespace shoal::app {
namespace {

constexpr double kWidth = 960, kHeight = 400, kLeft = 56, kTop = 72, kPanel = 360, kBottom = 344;
constexpr const char* kInk = "#1c2733";
constexpr const char* kFaint = "#c9d2dc";
constexpr const char* kOurs = "#0b6e99";
constexpr const char* kTheirs = "#c2571a";

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&') safe += "&amp;";
    else if (c == '<') safe += "&lt;";
    else if (c == '>') safe += "&gt;";
    else if (static_cast<unsigned char>(c) >= 0x20) safe += c;
  }
  return safe;
}

std::string label(double x, double y, const std::string& text, const char* anchor = "start", const char* colour = kInk) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y, anchor, colour, escaped(text));
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2, y2, colour);
}

// Members and speed-up, both in powers of two: what scales is a straight line.
class SpeedUp {
 public:
  explicit SpeedUp(const std::vector<exchange::Scaling>& scaling) : scaling_(scaling) {}

  std::string draw(const std::string& choice) const {
    if (scaling_.empty()) return "";
    std::string text = label(kLeft, kTop - 16, "speed-up over one machine, by members");
    for (const auto& at : scaling_) {
      const auto members = std::to_string(at.members);
      text += line(kLeft, y(at.members), kLeft + kPanel, y(at.members), kFaint) + label(kLeft - 8, y(at.members) + 4, members, "end") +
              label(x(at.members), kBottom + 20, members, "middle");
    }
    text += curve([](const exchange::Scaling& at) { return static_cast<double>(at.members); }, kFaint, "4 4") +
            curve([](const exchange::Scaling& at) { return at.ddp_speedup; }, kTheirs, "") +
            curve([](const exchange::Scaling& at) { return at.speedup; }, kOurs, "");
    return text + label(kLeft + 12, kTop + 14, choice, "start", kOurs) + label(kLeft + 12, kTop + 32, "DistributedDataParallel", "start", kTheirs) +
           label(kLeft + 12, kTop + 50, "as many times as fast as members", "start", "#7a8794");
  }

 private:
  double x(double members) const { return kLeft + kPanel * std::log2(members) / std::log2(scaling_.back().members); }
  double y(double speedup) const {
    const double share = std::log2(std::max(speedup, 1.0)) / std::log2(scaling_.back().members);
    return kBottom - (kBottom - kTop) * share;
  }
  template <class Value>
  std::string curve(Value value, const char* colour, const char* dashes) const {
    std::string points;
    for (const auto& at : scaling_) points += fmt::format("{:.1f},{:.1f} ", x(at.members), y(value(at)));
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"/>\n", points, colour, dashes);
  }

  const std::vector<exchange::Scaling>& scaling_;
};

// A bar a way, as long as its iteration; the part that computes is darker.
std::string bars(const exchange::Forecast& forecast, double computing) {
  constexpr double kNames = 150, kBegin = kLeft + kPanel + 40;
  const double from = kBegin + kNames, room = kWidth - from - 130;
  const double pitch = (kBottom + 20 - kTop) / static_cast<double>(forecast.rows.size()), bar = 0.6 * pitch;
  double longest = 0;
  for (const auto& row : forecast.rows) longest = std::max(longest, row.seconds);
  std::string text = label(kBegin, kTop - 16, "an iteration by each way; dark: computing");
  double y = kTop;
  for (const auto& row : forecast.rows) {
    const double whole = room * row.seconds / longest, work = room * std::min(computing, row.seconds) / longest;
    const double base = y + bar / 2 + 4;  // of letters beside the middle of the bar
    text += label(from - 8, base, row.choice.size() > 20 ? row.choice.substr(0, 19) + "…" : row.choice, "end") +
            fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#9cc7d8\"/>\n", from, y, whole, bar) +
            fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", from, y, work, bar, kOurs) +
            label(from + whole + 6, base, show_seconds(row.seconds) + (row.exact ? "" : ", not exact"));
    y += pitch;
  }
  return text;
}

}  // namespace

std::string to_svg(const PlanQuestion& question, const PlanAnswer& answer) {
  const auto& cluster = question.cluster;
  const std::string title = fmt::format("{}: {} members x {:g} samples, {}, {:.4g} GFLOP/s", question.model.name, cluster.members, cluster.samples,
                                        show_rate(cluster.machine.link.rate), cluster.machine.flops / 1e9);
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n"
                     "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
                     "<text x=\"{}\" y=\"28\" font-size=\"16\" fill=\"{}\">{}</text>\n",
                     kWidth, kHeight, kLeft, kInk, escaped(title)) +
         SpeedUp(answer.forecast.scaling).draw("by " + to_text(question.choice)) + bars(answer.forecast, answer.forecast.chosen.computing) +
         "</svg>\n";
}

}  // namespace shoal::app
