#include "shoal/packing/channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "shoal/core/error.h"

namespace shoal::packing {

Split split(double data, std::span<const Channel> channels) {
  const auto refuse = [](const std::string& what) { throw Error(Code::invalid_argument, what, "split"); };
  if (channels.empty()) refuse("there is no channel");
  if (!(data >= 0 && std::isfinite(data))) refuse(fmt::format("{} bytes of data", data));
  for (std::size_t j = 0; j < channels.size(); ++j) {
    const auto& [rate, fixed] = channels[j];
    if (!(rate > 0 && std::isfinite(rate))) refuse(fmt::format("channel {} has a rate of {}", j, rate));
    if (!(fixed >= 0 && std::isfinite(fixed))) refuse(fmt::format("channel {} begins after {} s", j, fixed));
  }
  Split made{std::vector<double>(channels.size(), 0), 0};
  if (data == 0) return made;

  std::vector<std::size_t> order(channels.size());           // by when they begin
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return channels[a].fixed_seconds < channels[b].fixed_seconds; });
  double rates = 0, begun = 0;                               // sum B_j, sum B_j tau_j of those filled
  for (const std::size_t j : order) {
    const auto& [rate, fixed] = channels[j];
    if (rates > 0 && fixed >= made.seconds) break;
    rates += rate;
    begun += rate * fixed;
    made.seconds = (data + begun) / rates;
  }
  for (std::size_t j = 0; j < channels.size(); ++j)
    made.data[j] = channels[j].rate * std::max(0.0, made.seconds - channels[j].fixed_seconds);
  return made;
}

}  // namespace shoal::packing
