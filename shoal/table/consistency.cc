#include "shoal/table/consistency.h"

#include <charconv>
#include <type_traits>

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
        using Policy = std::decay_t<decltype(policy)>;
        if constexpr (std::is_same_v<Policy, Ssp> || std::is_same_v<Policy, Essp>) return policy.staleness;
        if constexpr (std::is_same_v<Policy, Bsp>) return 0;
        return std::nullopt;
      },
      consistency);
}

}  // namespace

Consistency consistency_from(const std::string& text) {
  const auto colon = text.find(':');
  const std::string policy = text.substr(0, colon);
  if (colon == std::string::npos) {
    if (policy == "bsp") return Bsp{};
    if (policy == "async") return Async{};
  } else if (policy == "ssp" || policy == "essp" || policy == "bsp") {
    unsigned number = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, wrong] = std::from_chars(text.data() + colon + 1, end, number);
    constexpr unsigned most = 1'000'000;
    if (wrong == std::errc{} && stopped == end && number <= most) {
      if (policy == "bsp") return Bsp{number};
      return policy == "ssp" ? Consistency(Ssp{number}) : Consistency(Essp{number});
    }
  }
  throw Error(Code::invalid_argument, "no consistency is called \"" + text + "\"", "consistency",
              "one of bsp, bsp:BACKUPS, ssp:S, essp:S and async, with S clocks of staleness, as in ssp:3");
}

std::string name(const Consistency& consistency) {
  const auto bound = staleness(consistency);
  if (is<Bsp>(consistency)) return backups(consistency) == 0 ? "bsp" : "bsp:" + std::to_string(backups(consistency));
  if (is<Async>(consistency)) return "async";
  return (is<Ssp>(consistency) ? "ssp:" : "essp:") + std::to_string(*bound);
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
bool whole_clocks(const Consistency& consistency) { return is<Bsp>(consistency); }
bool clocked(const Consistency& consistency) { return !is<Async>(consistency); }

}  // namespace shoal::table
