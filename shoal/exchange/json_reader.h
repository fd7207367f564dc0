// Reads a file that people may have edited: what is wrong or missing is their mistake, named by file and key.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "shoal/core/dtype.h"
#include "shoal/core/error.h"

namespace shoal::exchange {

using Json = nlohmann::ordered_json;

// Throws Error{invalid_argument} naming `file`.
inline Json parse_json(const std::string& text, const std::string& file, const char* hint) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Error(Code::invalid_argument, "is not JSON", file, hint);
  return json;
}

// One object of it. `path` is how messages call it: "plan.units[3]". Refers to its arguments.
class Reader {
 public:
  Reader(const Json& json, std::string path, const std::string& file, const char* hint)
      : json_(json), path_(std::move(path)), file_(file), hint_(hint) {
    if (!json_.is_object()) refuse("is not an object");
  }
  double number(const char* key, double least) const {
    const auto& v = at(key);
    if (!v.is_number() || !std::isfinite(v.get<double>()) || v.get<double>() < least) bad(key, "is not a number >= " + std::to_string(least));
    return v.get<double>();
  }
  double number_or(const char* key, double least, double missing) const { return json_.contains(key) ? number(key, least) : missing; }
  std::uint64_t whole(const char* key, std::uint64_t most) const {
    const auto& v = at(key);
    if (!v.is_number_unsigned() || v.get<std::uint64_t>() > most) bad(key, "is not a whole number up to " + std::to_string(most));
    return v.get<std::uint64_t>();
  }
  std::uint64_t whole_or(const char* key, std::uint64_t most, std::uint64_t missing) const {
    return json_.contains(key) ? whole(key, most) : missing;
  }
  std::string text(const char* key) const {
    const auto& v = at(key);
    if (!v.is_string()) bad(key, "is not text");
    return v.get<std::string>();
  }
  std::string text_or(const char* key, const char* missing) const { return json_.contains(key) ? text(key) : missing; }
  const Json& list(const char* key) const {
    const auto& v = at(key);
    if (!v.is_array() || v.size() > kMostItems) bad(key, "is not a list");
    return v;
  }
  DType element_type(const char* key) const { return element_type_named(key, text(key)); }
  DType element_type_or(const char* key, const char* missing) const { return element_type_named(key, text_or(key, missing)); }
  // Each item of a list as an object.
  template <class Take>
  void each(const char* key, Take take) const {
    std::size_t i = 0;
    for (const auto& item : list(key)) take(Reader(item, path_ + "." + key + "[" + std::to_string(i++) + "]", file_, hint_));
  }
  Reader object(const char* key) const { return Reader(at(key), path_ + "." + key, file_, hint_); }
  [[noreturn]] void bad(const char* key, const std::string& why) const {
    throw Error(Code::invalid_argument, path_ + "." + key + " " + why, file_, hint_);
  }

 private:
  static constexpr std::size_t kMostItems = 1'000'000;
  [[noreturn]] void refuse(const std::string& why) const { throw Error(Code::invalid_argument, path_ + " " + why, file_, hint_); }
  DType element_type_named(const char* key, const std::string& text) const {
    try {
      return dtype_from(text);
    } catch (const Error& error) {
      bad(key, "is \"" + text + "\": " + error.fact());
    }
  }
  const Json& at(const char* key) const {
    const auto it = json_.find(key);
    if (it == json_.end()) refuse(std::string("has no \"") + key + "\"");
    return *it;
  }
  const Json& json_;
  std::string path_;
  const std::string& file_;
  const char* hint_;
};

}  // namespace shoal::exchange
