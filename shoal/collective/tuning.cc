#include "shoal/collective/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/known_network.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::collective {

namespace {

std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at = text.find(between); at != std::string::npos; at = text.find(between, begin)) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

}  // namespace

Tuning::Tuning(std::string text, const std::string& where) : text_(std::move(text)) {
  for (const std::string& token : split(text_, '#')) {
    const auto refuse = [&](const std::string& what) {
      throw Error(Code::invalid_argument, fmt::format("\"{}\": {}", token, what), where, "rules are like allreduce:1M-inf:@trees, separated by #");
    };
    const std::vector<std::string> fields = split(token, ':');
    if (fields.size() < 2 || fields.size() > 3 || !fields.back().starts_with('@')) refuse("not a collective, sizes and @program");
    const std::optional<Collective> collective = collective_called(fields[0]);
    if (!collective) refuse(fmt::format("there is no collective {}", fields[0]));
    Rule rule{*collective, 0, std::numeric_limits<double>::infinity(), fields.back().substr(1)};
    if (fields.size() == 3) {
      const auto dash = fields[1].find('-');
      if (dash == std::string::npos) refuse(fmt::format("{} is no range of sizes", fields[1]));
      try {
        rule.from = static_cast<double>(parse_size(fields[1].substr(0, dash)));
        if (const std::string to = fields[1].substr(dash + 1); to != "inf") rule.to = static_cast<double>(parse_size(to));
      } catch (const Error& error) {
        refuse(error.fact());
      }
      if (rule.to < rule.from) refuse("its sizes end before they begin");
    }
    auto names = builder_names(rule.collective);
    if (rule.collective == Collective::all_reduce) names.emplace_back(kHierarchical);
    if (rule.program != kTrees && std::find(names.begin(), names.end(), rule.program) == names.end()) {
      refuse(fmt::format("no program {} for {}: {} or {}", rule.program, name(rule.collective), fmt::join(names, ", "), kTrees));
    }
    rules_.push_back(std::move(rule));
  }
}

std::optional<std::string> Tuning::wish(Collective collective, double bytes) const {
  std::optional<std::string> found;
  for (const Rule& rule : rules_) {
    if (rule.collective == collective && bytes >= rule.from && bytes <= rule.to) found = rule.program;
  }
  return found;
}

}  // namespace shoal::collective
