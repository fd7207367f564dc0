#include "shoal/nn/group/said.h"

#include "shoal/net/environment.h"

namespace shoal::nn {

std::string said_here() { return net::variable("SHOAL_TOPOLOGY").value_or("auto") + '\0' + net::variable("SHOAL_TUNE").value_or(""); }

Said read_said(const std::string& text) {
  const auto end = text.find('\0');
  Said said{text.substr(0, end), nullptr};
  if (const std::string rules = end == std::string::npos ? "" : text.substr(end + 1); !rules.empty()) {
    said.tuning = std::make_shared<const collective::Tuning>(rules);
  }
  return said;
}

}  // namespace shoal::nn
