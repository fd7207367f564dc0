#include "shoal/collective/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>
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

[[noreturn]] void refuse_field(const std::string& what) { throw Error(Code::invalid_argument, what); }

double number_of(const std::string& text, bool is_size) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (is_size) return static_cast<double>(parse_size(text));
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse_field(fmt::format("{} is no whole number", text));
  return value;
}

// A program that there is for all of these collectives.
void check_program(const std::string& program, const std::vector<Collective>& collectives) {
  for (const Collective collective : collectives) {
    auto names = builder_names(collective);
    if (collective == Collective::all_reduce) names.insert(names.end(), std::begin(kForms), std::end(kForms));
    if (program != kTrees && std::find(names.begin(), names.end(), program) == names.end()) {
      refuse_field(fmt::format("no program {} for {}: {} or {}", program, name(collective), fmt::join(names, ", "), kTrees));
    }
  }
}

}  // namespace

Tuning::Tuning(std::string text, const std::string& where) : text_(std::move(text)) {
  for (const std::string& token : split(text_, '#')) {
    try {
      rules_.push_back(rule(token));
    } catch (const Error& error) {
      throw Error(Code::invalid_argument, fmt::format("\"{}\": {}", token, error.fact()), where,
                  "rules are like allreduce:1M-inf:@trees, separated by #");
    }
  }
}

Tuning::Rule Tuning::rule(const std::string& token) {
  const auto ranges = [](const std::string& text, bool is_size) {
    std::vector<Range> all;
    for (const std::string& part : split(text, ',')) {
      const auto dash = part.find('-');
      if (dash == std::string::npos && is_size) refuse_field(fmt::format("{} is no range of sizes", part));
      const Range range{number_of(part.substr(0, dash), is_size),
                        number_of(dash == std::string::npos ? part : part.substr(dash + 1), is_size)};
      if (range.to < range.from)
        refuse_field(is_size ? "its sizes end before they begin" : "its numbers of members end before they begin");
      all.push_back(range);
    }
    return all;
  };
  Rule made;
  const std::vector<std::string> fields = split(token, ':');
  for (std::size_t k = 1; k < fields.size(); ++k) {
    const std::string& field = fields[k];
    if (field.starts_with('@')) {
      made.program = field.substr(1);
    } else if (field.starts_with('[') && field.ends_with(']')) {
      made.members = ranges(field.substr(1, field.size() - 2), false);
    } else if (field.find('-') != std::string::npos) {
      made.sizes = ranges(field, true);
    } else if (field == "inf" || (!field.empty() && field.find_first_not_of("0123456789") == std::string::npos)) {
      made.score = number_of(field, false);
    } else {
      refuse_field(
          fmt::format("{} is neither sizes, [members], a score nor @program", field.empty() ? "an empty field" : field));
    }
  }
  if (made.program.empty()) refuse_field("not a collective, sizes and @program");
  for (const std::string& called : split(fields[0], ',')) {
    const std::optional<Collective> collective = collective_called(called);
    if (!collective) refuse_field(fmt::format("there is no collective {}", called));
    made.collectives.push_back(*collective);
  }
  check_program(made.program, made.collectives);
  return made;
}

bool Tuning::fits(const std::vector<Range>& ranges, double value) {
  return ranges.empty() ||
         std::ranges::any_of(ranges, [&](const Range& range) { return value >= range.from && value <= range.to; });
}

std::vector<Tuning::Wish> Tuning::wishes(Collective collective, std::uint32_t ranks, double bytes) const {
  std::vector<Wish> found;  // the latest rule first
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    const bool is_meant = std::ranges::find(rule->collectives, collective) != rule->collectives.end();
    if (!is_meant || !fits(rule->sizes, bytes) || !fits(rule->members, ranks)) continue;
    if (std::ranges::find(found, rule->program, &Wish::program) == found.end()) found.push_back({rule->program, rule->score});
  }
  std::ranges::stable_sort(found, std::greater<>(), &Wish::score);
  return found;
}

}  // namespace shoal::collective
