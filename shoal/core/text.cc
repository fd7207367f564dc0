#include "shoal/core/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "shoal/core/error.h"

namespace shoal {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

struct Quantity {
  double number;
  std::string unit;
};

[[noreturn]] void refuse(std::string_view text, const char* kind, const char* example) {
  throw Error(Code::invalid_argument, "'" + std::string(text) + "' is not a " + kind, {},
              std::string("for example ") + example);
}

// A decimal number without sign or exponent, then whatever follows. False where there is no number.
bool split(std::string_view text, Quantity& quantity) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, quantity.number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(quantity.number)) return false;
  quantity.unit.assign(rest, end);
  quantity.unit.erase(0, quantity.unit.find_first_not_of(' '));
  return true;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// The factor of `unit`, 0 where it is not in the list.
double factor_of(std::string_view unit, std::span<const Unit> units) {
  for (const Unit& known : units) {
    if (known.name == unit) return known.factor;
  }
  return 0;
}

constexpr std::array<Unit, 14> kSizes{{{"", 1},
                                       {"b", 1},
                                       {"k", 1e3},
                                       {"m", 1e6},
                                       {"g", 1e9},
                                       {"t", 1e12},
                                       {"kb", 1e3},
                                       {"mb", 1e6},
                                       {"gb", 1e9},
                                       {"tb", 1e12},
                                       {"kib", 1024.0},
                                       {"mib", 1048576.0},
                                       {"gib", 1073741824.0},
                                       {"tib", 1099511627776.0}}};
constexpr std::array<Unit, 5> kBits{
    {{"bit", 0.125}, {"kbit", 125}, {"mbit", 125e3}, {"gbit", 125e6}, {"tbit", 125e9}}};
constexpr std::array<Unit, 7> kDurations{
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}}};

// Three significant digits, without trailing zeros: 1.83, 12, 200.
std::string three_digits(double value) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), std::abs(value) >= 999.5 ? "%.0f" : "%.3g", value);
  return buffer.data();
}

// `value` in the first unit in which it stays below 1000, else in the last.
std::string in_units(double value, std::span<const Unit> units) {
  for (const Unit& unit : units.first(units.size() - 1)) {
    if (std::abs(value) / unit.factor < 999.5)
      return three_digits(value / unit.factor) + " " + std::string(unit.name);
  }
  return three_digits(value / units.back().factor) + " " + std::string(units.back().name);
}

}  // namespace

double parse_rate(std::string_view text) {
  constexpr const char* kExample = "200mbit, 1gbit or 25MB/s";
  Quantity quantity;
  if (!split(text, quantity)) refuse(text, "rate", kExample);
  std::string unit = quantity.unit;
  const bool per_second = unit.ends_with("/s");
  if (per_second) unit.resize(unit.size() - 2);
  double factor = factor_of(lower(unit), kBits);
  // Bytes need their capital B and "/s": "Mb" is read as bits by half of the world.
  if (factor == 0 && per_second && unit.ends_with('B')) factor = factor_of(lower(unit), kSizes);
  if (factor == 0 || quantity.number == 0) refuse(text, "rate", kExample);
  return quantity.number * factor;
}

std::uint64_t parse_size(std::string_view text) {
  constexpr const char* kExample = "64KB, 8MB or 1.5MiB";
  Quantity quantity;
  if (!split(text, quantity)) refuse(text, "size", kExample);
  const double bytes = quantity.number * factor_of(lower(quantity.unit), kSizes);
  if ((bytes == 0 && quantity.number != 0) || bytes >= 0x1p63) refuse(text, "size", kExample);
  return static_cast<std::uint64_t>(std::llround(bytes));
}

Nanoseconds parse_duration(std::string_view text) {
  constexpr const char* kExample = "500ms, 5s or 2m";
  Quantity quantity;
  if (!split(text, quantity)) refuse(text, "duration", kExample);
  const double count = quantity.number * factor_of(lower(quantity.unit), kDurations);
  if ((count == 0 && quantity.number != 0) || (quantity.unit.empty() && quantity.number != 0) ||
      count >= 0x1p62) {
    refuse(text, "duration", kExample);
  }
  return Nanoseconds(std::llround(count));
}

std::string show_rate(double bytes_per_second) {
  static constexpr std::array<Unit, 4> kUnits{
      {{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}}};
  return in_units(bytes_per_second * 8, kUnits);
}

std::string show_size(double bytes) {
  static constexpr std::array<Unit, 5> kUnits{
      {{"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}}};
  return in_units(bytes, kUnits);
}

std::string show_seconds(double seconds) {
  static constexpr std::array<Unit, 4> kUnits{{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
  if (seconds == 0) return "0 s";
  return in_units(seconds, kUnits);
}

std::string show_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string show_count(std::uint64_t count, std::string_view nouns) {
  if (count == 1 && nouns.ends_with("ies")) return "1 " + std::string(nouns.substr(0, nouns.size() - 3)) + "y";
  if (count == 1 && nouns.ends_with('s')) nouns.remove_suffix(1);
  return show_count(count) + " " + std::string(nouns);
}

std::string show_ranks(std::span<const std::uint32_t> ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  return text;
}

}  // namespace shoal
