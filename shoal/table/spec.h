// What a table is: all members open it with the same. A value; text on the wire.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "shoal/core/dtype.h"
#include "shoal/table/consistency.h"
#include "shoal/table/encoding.h"
#include "shoal/table/finite.h"
#include "shoal/table/row_map.h"
#include "shoal/table/rule.h"

namespace shoal::table {

// Values of a row that nobody has written. A function of (seed, key, column): the same on any server.
struct Initial {
  enum class Kind : std::uint8_t { constant, uniform, normal } kind = Kind::constant;
  double a = 0, b = 0;   // constant: the value a; uniform: in [a, b); normal: mean a, standard deviation b
  std::uint64_t seed = 0;

  static Initial constant(double value) { return {Kind::constant, value, 0, 0}; }
  static Initial uniform(double low, double high, std::uint64_t seed) { return {Kind::uniform, low, high, seed}; }
  static Initial normal(double mean, double deviation, std::uint64_t seed) { return {Kind::normal, mean, deviation, seed}; }
  bool zero() const { return kind == Kind::constant && a == 0; }
  double value(Key key, std::size_t column) const;
};

struct Spec {
  std::string name;         // one word of printable characters
  DType type = DType::f32;  // f32, f64, i32 or i64
  std::size_t width = 1;    // elements of a row, up to 2^26
  Consistency consistency = Essp{3};
  Initial initial{};
  Rule rule{};              // one that steps takes what is added for gradients, and needs f32 or f64
  Encoding encoding = Encoding::none;  // of increments to servers and of rows to readers; rounds f32 and f64 alone
  NotFinite not_finite = NotFinite::refuse;    // of what is added and assigned
};

std::uint64_t id_of(const Spec& spec);       // of its name
std::string text_of(const Spec& spec);       // for open, and for people
Spec spec_from(const std::string& text);     // throws Error{mismatch, invalid_argument}
void check(const Spec& spec);                // throws Error{invalid_argument} naming what cannot be
void check(const Spec& spec, std::uint32_t workers);  // the same, with so many workers
void check_survives(const Spec& spec);        // throws Error{unsupported} where its consistency does not bear the loss of members
void check_goes_back(const Spec& spec);       // throws Error{unsupported} where members that meet anew cannot go back to whole clocks (kept.h)

}  // namespace shoal::table
