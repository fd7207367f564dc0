#include "shoal/table/consistency.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <type_traits>
#include <vector>

#include "shoal/core/error.h"

namespace shoal::table {
namespace {

template <class Policy>
constexpr bool is(const Consistency& consistency) {
  return std::holds_alternative<Policy>(consistency);
}

std::optional<unsigned> staleness(const Consistency& consistency) {
  return std::visit(
      [](const auto& policy) -> std::optional<unsigned> {
        if constexpr (requires { policy.sampled; }) return std::nullopt;
        else if constexpr (requires { policy.staleness; }) return policy.staleness;
        if constexpr (requires { policy.most; }) return policy.most;
        if constexpr (requires { policy.backups; }) return 0;
        return std::nullopt;
      },
      consistency);
}

// The numbers behind a policy's name; nullopt: it has something else there.
std::optional<std::vector<double>> numbers_from(const std::string& text, std::size_t colon) {
  std::vector<double> numbers;
  for (std::size_t at = colon; at < text.size();) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, wrong] = std::from_chars(text.data() + at + 1, end, number);
    if (wrong != std::errc{} || (stopped != end && *stopped != ':')) return std::nullopt;
    numbers.push_back(number);
    at = static_cast<std::size_t>(stopped - text.data());
  }
  return numbers;
}

std::string text_of(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

std::optional<unsigned> whole(double number) {
  constexpr double most = 1'000'000;
  if (!(number >= 0 && number <= most) || number != std::trunc(number)) return std::nullopt;
  return static_cast<unsigned>(number);
}

bool positive(double number) { return number > 0 && std::isfinite(number); }

std::optional<Consistency> made(const std::string& policy, std::span<const double> numbers) {
  if (numbers.empty()) {
    if (policy == "bsp") return Bsp{};
    if (policy == "async") return Async{};
  }
  if (numbers.size() == 1) {
    const auto count = whole(numbers[0]);
    if (policy == "bsp" && count) return Bsp{*count};
    if (policy == "ssp" && count) return Ssp{*count};
    if (policy == "essp" && count) return Essp{*count};
    if (policy == "cap" && count) return Cap{*count};
    if (policy == "vap" && positive(numbers[0])) return Vap{numbers[0]};
    if (policy == "vap-strong" && positive(numbers[0])) return Vap{numbers[0], true};
  }
  if (numbers.size() == 2) {
    const auto count = whole(numbers[0]), behind = whole(numbers[1]);
    if (policy == "dssp" && count && behind && *count <= *behind) return Dssp{*count, *behind};
    if (policy == "pssp" && count && behind && *behind > 0) return Pssp{*count, *behind};
    if (policy == "significance" && positive(numbers[0]) && behind) return Significance{numbers[0], *behind};
    if (policy == "cvap" && count && positive(numbers[1])) return Cvap{*count, numbers[1]};
    if (policy == "cvap-strong" && count && positive(numbers[1])) return Cvap{*count, numbers[1], true};
  }
  return std::nullopt;
}

}  // namespace

Consistency consistency_from(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  if (const auto numbers = numbers_from(text, colon)) {
    if (const auto policy = made(text.substr(0, colon), *numbers)) return *policy;
  }
  throw Error(Code::invalid_argument, "no consistency is called \"" + text + "\"", "consistency",
              "one of bsp, bsp:BACKUPS, ssp:S, essp:S, cap:S, dssp:LEAST:MOST, pssp:S:SAMPLED, vap:V, vap-strong:V, cvap:S:V, cvap-strong:S:V, "
              "significance:T:S and async, with S clocks of staleness, magnitudes up to V and a threshold T, as in ssp:3");
}

std::string name(const Consistency& consistency) {
  const auto number = [](unsigned count) { return ':' + std::to_string(count); };
  if (const auto* bsp = std::get_if<Bsp>(&consistency)) return bsp->backups == 0 ? "bsp" : "bsp" + number(bsp->backups);
  if (const auto* ssp = std::get_if<Ssp>(&consistency)) return "ssp" + number(ssp->staleness);
  if (const auto* essp = std::get_if<Essp>(&consistency)) return "essp" + number(essp->staleness);
  if (const auto* cap = std::get_if<Cap>(&consistency)) return "cap" + number(cap->staleness);
  if (const auto* vap = std::get_if<Vap>(&consistency)) return (vap->strong ? "vap-strong:" : "vap:") + text_of(vap->bound);
  if (const auto* cvap = std::get_if<Cvap>(&consistency)) {
    return (cvap->strong ? "cvap-strong" : "cvap") + number(cvap->staleness) + ':' + text_of(cvap->bound);
  }
  if (const auto* significance = std::get_if<Significance>(&consistency)) {
    return "significance:" + text_of(significance->threshold) + number(significance->staleness);
  }
  if (const auto* dssp = std::get_if<Dssp>(&consistency)) return "dssp" + number(dssp->least) + number(dssp->most);
  if (const auto* pssp = std::get_if<Pssp>(&consistency)) return "pssp" + number(pssp->staleness) + number(pssp->sampled);
  return "async";
}

Clock needed_age(const Consistency& consistency, Clock clock) {
  const auto bound = staleness(consistency);
  return bound ? clock - static_cast<Clock>(*bound) : kNever;
}

std::optional<Clock> widest_gap(const Consistency& consistency) {
  const auto bound = staleness(consistency);
  if (!bound) return std::nullopt;
  return static_cast<Clock>(*bound) + 1;
}

unsigned backups(const Consistency& consistency) {
  const Bsp* const bsp = std::get_if<Bsp>(&consistency);
  return bsp ? bsp->backups : 0;
}

bool pushes(const Consistency& consistency) { return !is<Ssp>(consistency); }
bool divides_rounds(const Consistency& consistency) {
  return pushes(consistency) && !whole_clocks(consistency) && !tells_each_clock(consistency) && !value_bound(consistency, 0);
}
bool pushes_at_once(const Consistency& consistency) { return is<Async>(consistency) || is<Pssp>(consistency) || leaves_at_once(consistency); }
bool tells_each_clock(const Consistency& consistency) { return is<Pssp>(consistency); }
bool leaves_at_once(const Consistency& consistency) { return is<Cap>(consistency) || is<Vap>(consistency) || is<Cvap>(consistency); }
bool whole_clocks(const Consistency& consistency) { return is<Bsp>(consistency); }
bool keeps_copies(const Consistency& before, const Consistency& next) { return pushes(next) && (whole_clocks(before) || !whole_clocks(next)); }
bool clocked(const Consistency& consistency) { return staleness(consistency).has_value() || is<Pssp>(consistency); }

std::optional<double> value_bound(const Consistency& consistency, Clock clock) {
  return std::visit(
      [clock](const auto& policy) -> std::optional<double> {
        if constexpr (requires { policy.bound; }) return policy.bound / std::sqrt(static_cast<double>(clock) + 1);
        return std::nullopt;
      },
      consistency);
}

std::optional<double> insignificant(const Consistency& consistency, Clock clock) {
  const auto* const policy = std::get_if<Significance>(&consistency);
  if (!policy) return std::nullopt;
  return policy->threshold / std::sqrt(static_cast<double>(clock) + 1);
}

Clock longest_stay(const Consistency& consistency) {
  const auto* const policy = std::get_if<Significance>(&consistency);
  return policy ? policy->staleness : 0;
}

bool withholds(const Consistency& consistency) {
  return std::visit(
      [](const auto& policy) {
        if constexpr (requires { policy.strong; }) return policy.strong;
        return false;
      },
      consistency);
}

}  // namespace shoal::table
