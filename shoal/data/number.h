// Numbers as data files write them, by std::from_chars: no locale, the nearest number that the type has. Threads: pure functions.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace shoal::data {

enum class Scan : std::uint8_t { fine, no_number, not_finite, too_large };

// The decimal number at the front of [at, end), with or without a sign and an exponent; `at` moves behind it. Too small a number is 0.
template <class Real>
Scan scan_real(const char*& at, const char* end, Real& value) {
  const char* begin = at;
  if (begin != end && *begin == '+') {  // from_chars knows no plus
    ++begin;
    if (begin != end && *begin == '-') return Scan::no_number;
  }
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error == std::errc::invalid_argument) return Scan::no_number;
  if (error == std::errc{} && std::isfinite(value)) {
    at = rest;
    return Scan::fine;
  }
  at = rest;
  const char* letter = begin != end && *begin == '-' ? begin + 1 : begin;
  if (letter != end && (*letter == 'n' || *letter == 'N' || *letter == 'i' || *letter == 'I')) return Scan::not_finite;
  // Out of the type's range at one of its two ends. long double's ends lie farther out than those of the others.
  long double far = 0;
  if (std::from_chars(begin, end, far).ec != std::errc{} || std::abs(far) > 1) return Scan::too_large;
  value = static_cast<Real>(far);
  return Scan::fine;
}

// The same for digits alone.
inline Scan scan_index(const char*& at, const char* end, std::uint64_t& value) {
  const auto [rest, error] = std::from_chars(at, end, value);
  if (error == std::errc::invalid_argument) return Scan::no_number;
  at = rest;
  return error == std::errc{} ? Scan::fine : Scan::too_large;
}

inline bool is_space(char c) { return c == ' ' || c == '\t'; }
inline const char* skip_spaces(const char* at, const char* end) {
  while (at != end && is_space(*at)) ++at;
  return at;
}

// For an error line: 'text', cut where it is long, without what would disturb a terminal.
std::string quote(std::string_view text);

}  // namespace shoal::data
