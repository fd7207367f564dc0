#include "shoal/observe/event_line.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

namespace shoal::observe {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr int kMostRanks = 65536;
constexpr std::int64_t kFarthest = std::int64_t{1} << 62;  // nanoseconds; sums and differences of two stay in range
constexpr EventKind kLastKind = EventKind::recording;

std::string quoted(std::string_view text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

bool kind_from(const std::string& text, EventKind& kind) {
  for (int i = 0; i <= static_cast<int>(kLastKind); ++i) {
    kind = static_cast<EventKind>(i);
    if (text == name(kind)) return true;
  }
  return false;
}

// Leaves `value` where the key is missing; false where it is something else than a whole number within the limits.
template <class T>
bool take(const Json& json, const char* key, std::int64_t least, std::int64_t most, T& value) {
  const auto found = json.find(key);
  if (found == json.end()) return true;
  if (!found->is_number_integer()) return false;
  const auto number = found->get<std::int64_t>();
  if (number < least || number > most) return false;
  value = static_cast<T>(number);
  return true;
}

bool take(const Json& json, const char* key, std::string& value) {
  const auto found = json.find(key);
  if (found == json.end()) return true;
  if (!found->is_string()) return false;
  value = found->get<std::string>();
  return true;
}

// A loss may be anything; JSON has no NaN or infinity, so they travel as text.
std::string number_text(double value) {
  if (std::isfinite(value)) return fmt::format("{}", value);
  return std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
}

bool take_value(const Json& json, double& value) {
  const auto found = json.find("value");
  if (found == json.end()) return true;
  if (found->is_number()) {
    value = found->get<double>();
    return true;
  }
  if (*found == "nan")
    value = std::numeric_limits<double>::quiet_NaN();
  else if (*found == "inf")
    value = std::numeric_limits<double>::infinity();
  else if (*found == "-inf")
    value = -std::numeric_limits<double>::infinity();
  else
    return false;
  return true;
}

Json json_of(const Author& author) {
  return {{"rank", author.rank}, {"size", author.size}, {"host", author.host},
          {"boot", author.boot}, {"pid", author.pid},   {"unix_minus_steady_ns", author.unix_minus_steady_ns}};
}

bool take_author(const Json& json, Author& author) {
  return json.is_object() && json.contains("rank") && json.contains("size") && take(json, "size", 1, kMostRanks, author.size) &&
         take(json, "rank", 0, author.size - 1, author.rank) && take(json, "host", author.host) &&
         take(json, "boot", author.boot) && take(json, "pid", 0, kFarthest, author.pid) &&
         take(json, "unix_minus_steady_ns", -kFarthest, kFarthest, author.unix_minus_steady_ns);
}

}  // namespace

std::string to_line(const FileHeader& header) {
  Json json;
  if (header.merged) {
    json = {{"unix_begin_ns", header.unix_begin_ns}, {"ranks", Json::array()}, {"remarks", header.remarks}};
    for (const Author& author : header.authors) json["ranks"].push_back(json_of(author));
  } else {
    json = json_of(header.authors.front());
  }
  json["shoal_events"] = kVersion;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool parse_header(std::string_view line, FileHeader& header) {
  const Json json = Json::parse(line, nullptr, false);
  int version = 0;
  if (!json.is_object() || !take(json, "shoal_events", kVersion, kVersion, version) || version != kVersion) return false;
  header = {};
  if (!json.contains("ranks")) return take_author(json, header.authors.emplace_back());
  header.merged = true;
  if (!json["ranks"].is_array() || json["ranks"].empty() || json["ranks"].size() > kMostRanks) return false;
  for (const Json& one : json["ranks"]) {
    if (!take_author(one, header.authors.emplace_back())) return false;
  }
  if (const auto remarks = json.find("remarks"); remarks != json.end() && remarks->is_array()) {
    for (const Json& remark : *remarks) {
      if (remark.is_string()) header.remarks.push_back(remark.get<std::string>());
    }
  }
  return take(json, "unix_begin_ns", -kFarthest, kFarthest, header.unix_begin_ns);
}

void append_line(std::string& text, const Event& event, std::string_view name, int rank) {
  const std::int64_t begin = event.begin.time_since_epoch().count();
  const std::int64_t end = event.end.time_since_epoch().count();
  auto out = std::back_inserter(text);
  *out++ = '{';
  if (rank >= 0) fmt::format_to(out, R"("rank":{},)", rank);
  fmt::format_to(out, R"("kind":"{}","begin":{})", shoal::name(event.kind), begin);
  if (end != begin) fmt::format_to(out, R"(,"end":{})", end);
  if (event.step != -1) fmt::format_to(out, R"(,"step":{})", event.step);
  if (event.peer != -1) fmt::format_to(out, R"(,"peer":{})", event.peer);
  if (event.value != 0) fmt::format_to(out, R"(,"value":{})", number_text(event.value));
  if (!name.empty()) fmt::format_to(out, R"(,"name":{})", quoted(name));
  text += "}\n";
}

bool parse_line(std::string_view line, ParsedLine& parsed) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  parsed = {};
  std::string kind;
  std::int64_t begin = kFarthest + 1, end = 0;
  if (!take(json, "kind", kind) || !kind_from(kind, parsed.event.kind)) return false;
  if (!take(json, "begin", -kFarthest, kFarthest, begin) || begin > kFarthest) return false;
  end = begin;
  if (!take(json, "end", begin, kFarthest, end)) return false;
  parsed.event.begin = Instant(Nanoseconds(begin));
  parsed.event.end = Instant(Nanoseconds(end));
  return take(json, "step", -1, kFarthest, parsed.event.step) && take(json, "peer", -1, kMostRanks, parsed.event.peer) &&
         take_value(json, parsed.event.value) && take(json, "name", parsed.name) &&
         take(json, "rank", 0, kMostRanks, parsed.rank);
}

}  // namespace shoal::observe
