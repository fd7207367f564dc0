#include "shoal/exchange/choice.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/exchange/way.h"

namespace shoal::exchange {
namespace {

using Policy = Choice::Policy;

struct Named {
  const char* name;
  Policy policy;
  bool sized = false;       // takes a size
  std::uint64_t bytes = 0;  // where none is written
};
constexpr Named kPolicies[] = {
    {"auto", Policy::automatic}, {"poseidon", Policy::poseidon},            {"wfbp", Policy::wfbp},
    {"p3", Policy::p3, true},    {"ddp", Policy::ddp, true, 25'000'000},    {"local", Policy::local}, {"diloco", Policy::diloco},
    {"ps", Policy::ps},
};
constexpr std::uint64_t kMostBucketBytes = std::uint64_t{1} << 30;
constexpr std::uint32_t kMostLocalSteps = 1'000'000;
constexpr Rounds kDiLoCo = {.rate = 0.7, .momentum = 0.9};  // the paper's, but for the steps

class Parser {
 public:
  explicit Parser(const std::string& where) : where_(where) {}

  Choice parse(const std::string& text) const {
    Choice choice;
    if (text.find('/') != std::string::npos || text.ends_with(".json")) {
      choice.file = text;
      return choice;
    }
    if (text.starts_with(',')) refuse(fmt::format("\"{}\" begins with no policy", text), "auto,embed*=ring");
    std::string_view rest = text;
    for (bool first = true; first || !rest.empty(); first = false) {
      const auto comma = std::min(rest.find(','), rest.size());
      const std::string part(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (part.find('=') != std::string::npos) {
        choice.overrides.push_back(override_from(part));
      } else if (first) {
        take_policy(part, choice);
      } else {
        refuse(fmt::format("\"{}\" is no GLOB=WAY", part), "one policy, then overrides: auto,embed*=ring");
      }
    }
    if (choice.served && !choice.overrides.empty()) refuse("ps takes no overrides: all parameters are served", "ps:ssp:3");
    for (const auto& o : choice.overrides) {
      if (!choice.rounds) continue;
      if (o.way.starts_with(kServers) || way_named(o.way)->divides()) {
        refuse(fmt::format("{}={}: between two times that members come together nobody serves, and nothing is divided", o.glob, o.way), "an all-reduce, or a lossy way");
      }
      if (o.way == kByFactors || o.way == kByRows) {
        refuse(fmt::format("{}={}: a difference of parameters has no {}", o.glob, o.way, o.way),
               "an all-reduce, or a lossy way");
      }
    }
    return choice;
  }

 private:
  void serve(const std::string& text, Choice& choice) const {
    const auto plus = std::min(text.find('+'), text.size());
    try {
      choice.served = table::consistency_from(text.substr(0, plus));
      if (plus < text.size()) choice.encoding = table::encoding_from(text.substr(plus + 1));
    } catch (const Error& error) {
      refuse(error.fact(), error.hint());
    }
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const { throw Error(Code::invalid_argument, what, where_, hint); }

  std::string way(const std::string& name) const {
    try {
      return way_named(name)->name();
    } catch (const Error& error) {
      refuse(error.fact(), error.hint());
    }
  }

  Choice::Override override_from(const std::string& part) const {
    const auto equals = part.rfind('=');
    if (equals == 0) refuse(fmt::format("\"{}\" names no tensor", part), "GLOB=WAY, as in embed*=ring");
    return {part.substr(0, equals), way(part.substr(equals + 1))};
  }

  void take_policy(const std::string& part, Choice& choice) const {
    if (part.empty()) return;
    const auto colon = std::min(part.find(':'), part.size());
    const std::string name = part.substr(0, colon), argument = part.substr(std::min(colon + 1, part.size()));
    const auto known = std::find_if(std::begin(kPolicies), std::end(kPolicies), [&](const Named& p) { return p.name == name; });
    if (known == std::end(kPolicies)) {
      std::vector<std::string> ways;
      for (const auto& family : way_families()) ways.push_back(family.spelling);
      const auto is_meant = [&](const std::string& spelling) { return spelling.substr(0, spelling.find_first_of(":[")) == name; };
      if (std::none_of(ways.begin(), ways.end(), is_meant)) {
        refuse(fmt::format("\"{}\" is no plan", part),
               fmt::format("auto, poseidon, wfbp, p3, ddp:25MB, local:8, diloco:16, ps:ssp:3, a way ({}), GLOB=WAY, or a saved plan.json",
                           fmt::join(ways, ", ")));
      }
      choice.policy = Policy::way;
      choice.way = way(part);
      return;
    }
    choice.policy = known->policy;
    choice.bytes = known->bytes;
    if (known->policy == Policy::local) {
      choice.rounds = {.steps = whole(part, argument, "how many steps", kMostLocalSteps)};
    } else if (known->policy == Policy::diloco) {
      choice.rounds = diloco(part, argument);
    } else if (known->policy == Policy::ps) {
      serve(argument.empty() ? "bsp" : argument, choice);
    } else if (colon < part.size()) {
      if (!known->sized) refuse(fmt::format("{} takes no \":{}\"", name, argument), name);
      choice.bytes = size(name, argument);
    }
  }

  std::uint64_t size(const std::string& of, const std::string& text) const {
    std::uint64_t bytes = 0;
    try {
      bytes = parse_size(text);
    } catch (const Error& error) {
      refuse(error.fact(), of + ":25MB");
    }
    if (bytes == 0 || bytes > kMostBucketBytes) refuse(fmt::format("{}:{} is not between 1 byte and 1 GiB", of, text), of + ":25MB");
    return bytes;
  }

  // `part` is all of the policy, for messages.
  Rounds diloco(const std::string& part, std::string_view arguments) const {
    std::vector<std::string> texts;
    for (std::size_t colon = 0; colon != std::string_view::npos;) {
      colon = arguments.find(':');
      texts.emplace_back(arguments.substr(0, colon));
      arguments.remove_prefix(std::min(colon, arguments.size() - 1) + 1);
    }
    if (texts.size() > 4) refuse(fmt::format("\"{}\" says too much", part), "diloco:STEPS:FRAGMENTS:RATE:MOMENTUM");
    Rounds rounds = kDiLoCo;
    rounds.steps = whole(part, texts[0], "how many steps", kMostLocalSteps);
    if (texts.size() > 1) rounds.fragments = whole(part, texts[1], "in how many fragments, at most one a step", rounds.steps);
    if (texts.size() > 2) rounds.rate = number(part, texts[2], "the outer rate, above 0 and up to 10");
    if (texts.size() > 3) rounds.momentum = number(part, texts[3], "the outer momentum, from 0 and below 1");
    if (!(rounds.rate > 0 && rounds.rate <= 10)) refuse(fmt::format("{}: the outer rate is not above 0 and up to 10", part), "0.7 is usual");
    if (!(rounds.momentum >= 0 && rounds.momentum < 1)) refuse(fmt::format("{}: the outer momentum is not from 0 and below 1", part), "0.9 is usual");
    return rounds;
  }

  std::uint32_t whole(const std::string& part, const std::string& text, const char* what, std::uint32_t most) const {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > most) {
      refuse(fmt::format("{} does not say {}", part, what),
             "local:8 averages after every eighth step; diloco:16:4 sends four fragments in turn");
    }
    return value;
  }

  double number(const std::string& part, const std::string& text, const char* what) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) refuse(fmt::format("{} does not say {}", part, what), "diloco:16:1:0.7:0.9");
    return value;
  }

  const std::string& where_;
};

}  // namespace

bool Choice::Override::matches(const std::string& tensor) const { return ::fnmatch(glob.c_str(), tensor.c_str(), 0) == 0; }

const std::string* Choice::override_of(const std::string& tensor) const {
  const auto last = std::find_if(overrides.rbegin(), overrides.rend(), [&](const Override& o) { return o.matches(tensor); });
  return last == overrides.rend() ? nullptr : &last->way;
}

Choice parse_choice(const std::string& text, const std::string& where) { return Parser(where).parse(text); }

namespace {

std::string exact_size(std::uint64_t bytes) {
  if (bytes % 1'000'000 == 0) return fmt::format("{}MB", bytes / 1'000'000);
  return bytes % 1000 == 0 ? fmt::format("{}KB", bytes / 1000) : std::to_string(bytes);
}

// As few as say all that is not `usual`.
std::string arguments_of(const Rounds& rounds, const Rounds& usual) {
  if (rounds.momentum != usual.momentum) return fmt::format("{}:{}:{}:{}", rounds.steps, rounds.fragments, rounds.rate, rounds.momentum);
  if (rounds.rate != usual.rate) return fmt::format("{}:{}:{}", rounds.steps, rounds.fragments, rounds.rate);
  if (rounds.fragments != usual.fragments) return fmt::format("{}:{}", rounds.steps, rounds.fragments);
  return std::to_string(rounds.steps);
}

}  // namespace

std::string to_text(const Choice& choice) {
  if (!choice.file.empty()) return choice.file;
  std::string text = choice.way;
  for (const auto& known : kPolicies) {
    if (known.policy != choice.policy) continue;
    text = known.name;
    if (choice.bytes > 0) text += ":" + exact_size(choice.bytes);
    if (choice.rounds) text += ":" + arguments_of(*choice.rounds, known.policy == Policy::diloco ? kDiLoCo : Rounds());
    if (choice.served) text += ":" + table::name(*choice.served);
    if (choice.encoding != table::Encoding::none) text += std::string("+") + table::name(choice.encoding);
  }
  for (const auto& o : choice.overrides) text += fmt::format(",{}={}", o.glob, o.way);
  return text;
}

}  // namespace shoal::exchange
