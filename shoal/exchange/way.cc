#include "shoal/exchange/way.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "shoal/collective/build.h"
#include "shoal/core/error.h"
#include "shoal/exchange/flow.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

struct Known {
  const char* name;
  const char* arguments;
  bool exact;
  std::size_t least, most;  // arguments
  std::shared_ptr<const Way> (*make)(const WayName& name);
};

constexpr Known kKnown[] = {
    {kByFactors, "", true, 0, 0, make_factors_way},
    {"hybrid", ":GROUPS", true, 1, 1, make_hybrid_way},
    {kByRows, "", true, 0, 0, make_rows_way},
    {"servers", ":COUNT", true, 1, 1, make_servers_way},
    {"owners", "", true, 0, 0, make_owners_way},
    {"bf16", "", false, 0, 0, make_bf16_way},
    {"int8", "", false, 0, 0, make_int8_way},
    {"topk", ":SHARE[:MOMENTUM[:WARMUP[:CLIP]]]", false, 1, 4, make_topk_way},
    {"powersgd", ":RANK", false, 1, 1, make_powersgd_way},
};

std::string spelled(const Known& known) { return std::string(known.name) + known.arguments; }

}  // namespace

WayName::WayName(std::string text) : text_(std::move(text)) {
  std::size_t begin = 0;
  for (auto colon = text_.find(':'); colon != std::string::npos; colon = text_.find(':', begin)) {
    parts_.push_back(text_.substr(begin, colon - begin));
    begin = colon + 1;
  }
  parts_.push_back(text_.substr(begin));
}

double WayName::number(std::size_t i, const std::string& what, double least, double most, double otherwise) const {
  if (i >= arguments()) return otherwise;
  const auto& part = parts_[i + 1];
  double value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc() || end != part.data() + part.size() || !(value >= least && value <= most)) {
    const auto shown = [](double v) {
      char text[32];
      return std::string(text, std::to_chars(text, text + sizeof text, v).ptr);
    };
    refuse(what + " \"" + part + "\" is no number from " + shown(least) + " to " + shown(most));
  }
  return value;
}

void WayName::refuse(const std::string& why) const {
  const auto known = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) { return k.name == family(); });
  throw Error(Code::invalid_argument, "the way \"" + text_ + "\": " + why, "plan",
              known == std::end(kKnown) ? "" : "it is spelled " + spelled(*known));
}

namespace {
constexpr double kNoise = 0.86;  // is left of numbers without zeros
}

// Numbers of rows have few zeros among them. What is rounded, or chosen, is taken as it is. However few bytes are left of
// zeros, all of them are packed, unpacked and added, by processors that members share.
double Way::wire_share(const Load& load) const {
  constexpr double kHandled = 1.5e9;  // bytes/s
  if (!exact() || load.wire_share == 1) return 1;
  return std::min(1.0, std::max(is_sized() ? load.wire_share : std::max(load.wire_share, kNoise), load.link.rate / kHandled));
}

Cost Way::cost(const Load& load) const {
  std::vector<Leg> all = legs(load);
  const double sent = busiest_bytes(all, load.ranks), share = wire_share(load);
  // What goes in other moments, activations and parameters, has not the mean's zeros.
  for (Leg& leg : all) leg.wire_share = share == 1 || leg.when == Leg::When::mean ? share : std::max(share, kNoise);
  std::vector<Leg> empty = all;
  for (Leg& leg : empty) leg.elements = 0;
  const auto on_the_link = [&](Leg::When when) { return seconds(all, when, load.ranks, load.link); };
  return {.sent = sent,
          .wire = share * sent,
          .link = on_the_link(Leg::When::mean),
          .latency = seconds(empty, Leg::When::mean, load.ranks, load.link),
          .computing = computing(load),
          .between = on_the_link(Leg::When::forward) + on_the_link(Leg::When::backward),
          .after = on_the_link(Leg::When::after)};
}

std::uint32_t Way::slice_bytes(const Load& load) const {
  return collective::slice_bytes(Collective::all_gather, "ring", load.ranks, cost(load).sent, load.link);
}

bool is_program(const std::string& way) {
  const auto builders = collective::builder_names(Collective::all_reduce);
  return collective::is_of_network(way) || std::find(builders.begin(), builders.end(), way) != builders.end();
}

std::shared_ptr<const Way> way_named(const std::string& text) {
  const WayName name(text);
  if (is_program(text)) return make_all_reduce_way(name);
  for (const Known& known : kKnown) {
    if (known.name != name.family()) continue;
    if (name.arguments() < known.least || name.arguments() > known.most) name.refuse("wrong number of arguments");
    return known.make(name);
  }
  std::string all;
  for (const auto& family : way_families()) all += (all.empty() ? "" : ", ") + family.spelling;
  throw Error(Code::invalid_argument, "there is no way \"" + text + "\"", "plan", "one of " + all);
}

std::vector<WayFamily> way_families() {
  std::vector<WayFamily> families;
  for (const auto& builder : collective::builder_names(Collective::all_reduce)) families.push_back({builder});
  families.push_back({collective::kTrees});
  for (const char* const form : collective::kForms) families.push_back({form});
  for (const Known& known : kKnown) families.push_back({spelled(known), known.exact});
  return families;
}

}  // namespace shoal::exchange
