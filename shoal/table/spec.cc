#include "shoal/table/spec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <sstream>

#include "shoal/core/error.h"
#include "shoal/core/fnv.h"
#include "shoal/core/seed.h"

namespace shoal::table {
namespace {

constexpr const char* kInitialNames[] = {"constant", "uniform", "normal"};
constexpr std::uint32_t kSite = 0x7461626c;  // of random numbers: "tabl"

double draw(std::uint64_t seed, Key key, std::size_t column, std::uint32_t which) {
  return shoal::uniform(seed, key, static_cast<std::uint32_t>(column), kSite + which);
}

}  // namespace

double Initial::value(Key key, std::size_t column) const {
  if (kind == Kind::constant) return a;
  const double first = draw(seed, key, column, 0);
  if (kind == Kind::uniform) return a + (b - a) * first;
  const double second = draw(seed, key, column, 1);  // Box and Muller, 1958
  return a + b * std::sqrt(-2 * std::log1p(-first)) * std::cos(2 * std::numbers::pi * second);
}

std::uint64_t id_of(const Spec& spec) {
  Fnv1a hash;
  hash.add_bytes(std::as_bytes(std::span(spec.name)));
  return hash.value();
}

std::string text_of(const Spec& spec) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << spec.name << ": " << shoal::name(spec.type) << " x " << spec.width << ", " << name(spec.consistency) << ", "
       << kInitialNames[static_cast<int>(spec.initial.kind)] << ' ' << spec.initial.a << ' ' << spec.initial.b << ' ' << spec.initial.seed
       << ", " << name(spec.rule);
  if (spec.encoding != Encoding::none) text << " as " << name(spec.encoding);
  if (spec.not_finite != NotFinite::refuse) text << " not-finite " << name(spec.not_finite);
  return text.str();
}

Spec spec_from(const std::string& text) {
  const auto cannot = [&] {
    return Error(Code::mismatch, "a table is described as \"" + text + "\"", "tables", "run the same program on all members");
  };
  std::istringstream in(text);
  Spec spec;
  std::string type, times, consistency, initial, comma, rule;
  in >> spec.name >> type >> times >> spec.width >> std::ws;
  std::getline(in, times, ',');
  in >> consistency >> initial >> spec.initial.a >> spec.initial.b >> spec.initial.seed >> comma >> rule;
  const auto kind = std::find(std::begin(kInitialNames), std::end(kInitialNames), initial);
  if (!in || !spec.name.ends_with(':') || !consistency.ends_with(',') || kind == std::end(kInitialNames)) throw cannot();
  spec.name.pop_back();
  consistency.pop_back();
  spec.type = dtype_from(type);
  spec.consistency = consistency_from(consistency);
  spec.initial.kind = static_cast<Initial::Kind>(kind - std::begin(kInitialNames));
  spec.rule = rule_from(rule);
  for (std::string what, value; in >> what >> value;) {
    if (what == "as") spec.encoding = encoding_from(value);
    if (what == "not-finite") spec.not_finite = not_finite_from(value);
  }
  check(spec);
  return spec;
}

void check(const Spec& spec) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw Error(Code::invalid_argument, what, "table " + spec.name, hint);
  };
  constexpr std::size_t longest_name = 200, widest = std::size_t{1} << 26;
  const bool printable = std::all_of(spec.name.begin(), spec.name.end(), [](char c) { return c > ' ' && c < '\x7f' && c != ':'; });
  if (spec.name.empty() || spec.name.size() > longest_name || !printable) {
    refuse("a table's name is one word without a colon", "for instance \"weights\"");
  }
  if (spec.type != DType::f32 && spec.type != DType::f64 && spec.type != DType::i32 && spec.type != DType::i64) {
    refuse(std::string("no table holds ") + shoal::name(spec.type), "f32, f64, i32 or i64");
  }
  if (spec.width == 0 || spec.width > widest) refuse("a row has " + std::to_string(spec.width) + " elements", "from 1 to " + std::to_string(widest));
  if (spec.rule.steps() && spec.type != DType::f32 && spec.type != DType::f64) refuse("a rule that steps needs f32 or f64", "");
  if (backups(spec.consistency) > 0 && !spec.rule.steps()) refuse("with backups increments would be lost", "use a rule that steps, as sgd:0.1");
  if (revises(spec.rule) && value_bound(spec.consistency, 0)) refuse("nothing bounds the steps of " + name(spec.rule), "adagrad's are bounded; or bound clocks");
  if (spec.encoding != Encoding::none && spec.type != DType::f32 && spec.type != DType::f64) refuse("integers are exact: they are not rounded", "encoding none");
  if (spec.encoding != Encoding::none && value_bound(spec.consistency, 0)) {
    refuse(std::string("rows that travel as ") + name(spec.encoding) + " differ by more than a bound on values says", "encoding none, or bound clocks");
  }
  if (spec.not_finite == NotFinite::pass && spec.encoding != Encoding::none) refuse("what is not finite cannot be rounded", "not_finite refuse or clip");
  if (spec.not_finite != NotFinite::refuse && value_bound(spec.consistency, 0)) refuse("what is not finite has no bound", "not_finite refuse");
  const Initial& initial = spec.initial;
  if (!std::isfinite(initial.a) || !std::isfinite(initial.b)) refuse("initial values must be finite", "");
  if ((spec.type == DType::i32 || spec.type == DType::i64) && (initial.kind != Initial::Kind::constant || initial.a != std::trunc(initial.a) ||
                                                               std::abs(initial.a) > std::numeric_limits<std::int32_t>::max())) {
    refuse("integers begin with a constant whole number of 32 bits", "");
  }
  if (initial.kind == Initial::Kind::uniform && initial.b < initial.a) refuse("uniform initial values need low <= high", "");
  if (initial.kind == Initial::Kind::normal && initial.b < 0) refuse("normal initial values need a deviation that is not negative", "");
}

void check_survives(const Spec& spec) {
  const bool forgets = clocked(spec.consistency) && !leaves_at_once(spec.consistency) && !widest_gap(spec.consistency);
  if (revises(spec.rule) && !whole_clocks(spec.consistency)) {  // a second holder answers nobody who reads
    throw Error(Code::unsupported, name(spec.rule) + " under " + name(spec.consistency) + " does not survive the loss of a member", "table " + spec.name,
                "adagrad does; or run with --on-peer-lost fail");
  }
  if (spec.encoding != Encoding::none && whole_clocks(spec.consistency)) {  // another holder rounds them another way
    throw Error(Code::unsupported, "the same bits of rows that travel as " + std::string(name(spec.encoding)) + " do not survive the loss of a member",
                "table " + spec.name, "encoding none does; or run with --on-peer-lost fail");
  }
  if (value_bound(spec.consistency, 0) && spec.rule.steps()) {  // each holder steps in its own order
    throw Error(Code::unsupported, "a bound on what " + name(spec.rule) + " steps does not survive the loss of a member", "table " + spec.name,
                "one on sums does; or run with --on-peer-lost fail");
  }
  if (!withholds(spec.consistency) && backups(spec.consistency) == 0 && !forgets) return;
  throw Error(Code::unsupported, name(spec.consistency) + " does not survive the loss of a member", "table " + spec.name,
              "bsp, ssp, essp, cap, vap, cvap and async do; or run with --on-peer-lost fail");
}

void check_goes_back(const Spec& spec) {
  const auto refuse = [&](const std::string& what, const char* hint) {
    throw Error(Code::unsupported, what + " cannot go back to whole clocks when others come in place of lost members", "table " + spec.name, hint);
  };
  const bool stays = longest_stay(spec.consistency) > 0, summed = whole_clocks(spec.consistency) || !spec.rule.steps();
  if (!clocked(spec.consistency) || leaves_at_once(spec.consistency) || stays) {
    refuse(name(spec.consistency), "bsp, ssp, essp and dssp can; or run with --on-peer-lost shrink");
  }
  if (!summed) refuse("steps of " + name(spec.rule) + " under " + name(spec.consistency), "under bsp they can; or run with --on-peer-lost shrink");
  if (spec.encoding != Encoding::none) {             // what was rounded off lies with who added it
    refuse("what travels as " + std::string(name(spec.encoding)), "encoding none can; or run with --on-peer-lost shrink");
  }
}

void check(const Spec& spec, std::uint32_t workers) {
  check(spec);
  if (backups(spec.consistency) < workers) return;
  throw Error(Code::invalid_argument, name(spec.consistency) + " with " + std::to_string(workers) + " workers", "table " + spec.name,
              "fewer backups than workers");
}

}  // namespace shoal::table
