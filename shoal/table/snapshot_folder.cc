#include "shoal/table/snapshot_folder.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

#include "shoal/core/aside.h"
#include "shoal/core/error.h"

namespace shoal::table {
namespace {

namespace fs = std::filesystem;
constexpr const char *kIndex = "table.json", *kFormat = "shoal table";
constexpr int kVersion = 1;
constexpr std::uint32_t kMostParts = 4096;
constexpr std::size_t kIdDigits = 16, kLongestIndex = 64 * 1024;

}  // namespace

bool is_id(const std::string& text) {
  return text.size() == kIdDigits && std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string text_of(const Cut& cut) {
  return nlohmann::ordered_json{{"format", kFormat}, {"version", kVersion}, {"table", text_of(cut.spec)}, {"clock", cut.clock}, {"rule", name(cut.rule)},
                                {"id", cut.id}, {"parts", cut.parts}, {"time", cut.time}}.dump(1);
}

Cut cut_from(const std::string& text, const fs::path& file) try {
  const auto json = nlohmann::json::parse(text);
  if (json.at("format") != kFormat) throw Error(Code::invalid_argument, "is no snapshot of a table", file.string());
  if (json.at("version") != kVersion) {
    throw Error(Code::invalid_argument, "a snapshot of version " + json.at("version").dump() + ", this Shoal reads version " + std::to_string(kVersion),
                file.string(), "a newer Shoal reads it");
  }
  Cut cut{spec_from(json.at("table")), json.at("clock"), rule_from(json.at("rule")), json.at("id"), json.at("parts"), json.at("time")};
  const bool possible = is_id(cut.id) && cut.clock >= -kLastClock && cut.clock <= kLastClock && cut.parts > 0 && cut.parts <= kMostParts;
  if (!possible || !same_kind(cut.rule, cut.spec.rule)) throw Error(Code::invalid_argument, "damaged: it describes no snapshot", file.string());
  return cut;
} catch (const nlohmann::json::exception&) {
  throw Error(Code::invalid_argument, "damaged, or no snapshot of a table", file.string());
} catch (const Error& error) {
  if (error.where() == file.string()) throw;
  throw Error(Code::invalid_argument, "damaged: " + error.fact(), file.string());
}

fs::path part_file(const fs::path& folder, const Cut& cut, std::uint32_t part) {
  return folder / ("part-" + std::to_string(part) + "-of-" + std::to_string(cut.parts) + "-" + cut.id + ".shoal");
}

namespace {

// The number P in "part-P-of-N-ID.shoal", or in what is written aside for it; nullopt: it is no such file.
std::optional<std::uint64_t> part_named(std::string_view name) {
  if (name.starts_with(".")) name.remove_prefix(1);
  constexpr std::string_view kBegins = "part-";
  if (!name.starts_with(kBegins)) return std::nullopt;
  name.remove_prefix(kBegins.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || !std::string_view(end, name.data() + name.size()).starts_with("-of-")) return std::nullopt;
  return number;
}

}  // namespace

std::optional<Cut> read_index(const fs::path& folder) {
  const fs::path file = folder / kIndex;
  std::error_code none;
  if (!fs::exists(file, none)) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  std::string text(kLongestIndex, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || !in.eof()) throw Error(Code::invalid_argument, "cannot be read, or is no snapshot of a table", file.string());
  text.resize(static_cast<std::size_t>(in.gcount()));
  return cut_from(text, file);
}

void write_index(const fs::path& folder, const Cut& cut) { write_aside(folder / kIndex, text_of(cut) + "\n"); }

void keep_parts(const fs::path& folder, const std::string& id, std::uint32_t part, std::uint32_t parts) {
  std::error_code none;
  std::vector<fs::path> old;
  for (fs::directory_iterator at(folder, none), end; at != end && !none; at.increment(none)) {
    const std::string name = at->path().filename().string();
    const auto named = part_named(name);
    const auto suffix = name.find(".shoal");
    if (!named || suffix == std::string::npos || suffix <= kIdDigits) continue;
    const std::string of = name.substr(suffix - kIdDigits, kIdDigits);
    const bool ours = *named == part || (part + 1 == parts && *named >= parts);
    if (ours && is_id(of) && of != id) old.push_back(at->path());
  }
  for (const fs::path& file : old) fs::remove(file, none);
}

namespace {

std::mutex claims_guard;  // guards claims()
std::set<fs::path>& claims() {
  static std::set<fs::path> folders;
  return folders;
}

}  // namespace

FolderClaim::FolderClaim(fs::path folder) : folder_(folder.lexically_normal()) {
  const std::lock_guard lock(claims_guard);
  if (!claims().insert(folder_).second) {
    throw Error(Code::invalid_argument, "a snapshot is being written there", folder.string(), "wait() for it first, or name another folder");
  }
}

FolderClaim::~FolderClaim() {
  const std::lock_guard lock(claims_guard);
  claims().erase(folder_);
}

}  // namespace shoal::table
