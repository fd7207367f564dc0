#include "shoal/observe/run_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

#include "shoal/core/aside.h"
#include "shoal/core/error.h"

namespace shoal::observe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 64;
constexpr const char* kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
constexpr int kMostOfOneSecond = 1000;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

// N of "events-N.jsonl", -1 for any other name.
int rank_of(const std::string& file) {
  constexpr std::string_view before = "events-", after = ".jsonl";
  if (!file.starts_with(before) || !file.ends_with(after) || file.size() <= before.size() + after.size()) return -1;
  const char* const begin = file.data() + before.size();
  const char* const end = file.data() + file.size() - after.size();
  int rank = -1;
  const auto [rest, error] = std::from_chars(begin, end, rank);
  return error == std::errc{} && rest == end ? rank : -1;
}

}  // namespace

RunFolder RunFolder::create(const fs::path& parent, const std::string& name, const std::string& name_from) {
  if (name.empty() || name.size() > kLongestName || name.find_first_not_of(kLetters) != std::string::npos) {
    throw Error(Code::invalid_argument, "'" + name + "' is no name for a run", name_from,
                "1 to 64 letters, digits, dots, dashes and underscores");
  }
  std::error_code error;
  fs::create_directories(parent, error);
  const std::string stem = utc_now() + "-" + name;
  for (int i = 1; !error && i < kMostOfOneSecond; ++i) {
    const fs::path folder = fs::absolute(parent) / (i == 1 ? stem : fmt::format("{}-{}", stem, i));
    if (!fs::create_directory(folder, error)) continue;
    fs::create_directory(folder / "logs", error);
    if (!error) return RunFolder(folder);
  }
  throw Error(Code::invalid_argument, "cannot be written: " + error.message(), parent.string(),
              "run in a folder that you may write");
}

std::string RunFolder::fitting(const std::string& text) {
  std::string name = text.substr(0, kLongestName);
  for (char& c : name) {
    if (!std::strchr(kLetters, c)) c = '_';
  }
  return name;
}

RunFolder RunFolder::open(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    throw Error(Code::invalid_argument, "is not the folder of a run", path.string(), "they are under runs/");
  }
  fs::path whole = fs::absolute(path).lexically_normal();
  return RunFolder(whole.has_filename() ? whole : whole.parent_path());
}

fs::path RunFolder::events_of(int rank) const { return path_ / fmt::format("events-{}.jsonl", rank); }

std::vector<fs::path> RunFolder::event_files() const {
  std::vector<std::pair<int, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_, error)) {
    const int rank = rank_of(entry.path().filename());
    if (rank >= 0) found.emplace_back(rank, entry.path());
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> files;
  for (auto& [rank, file] : found) files.push_back(std::move(file));
  return files;
}

void RunFolder::write(const std::string& file, const std::string& text) const { write_aside(path_ / file, text); }

std::optional<std::string> RunFolder::read(const std::string& file, std::size_t most_bytes) const {
  const fs::path whole = path_ / file;
  std::error_code error;
  if (!fs::exists(whole, error)) return std::nullopt;
  const auto size = fs::file_size(whole, error);
  if (!error && size > most_bytes) {
    throw Error(Code::io, "is larger than " + std::to_string(most_bytes) + " bytes", whole.string());
  }
  std::ifstream in(whole, std::ios::binary);
  std::string text(error ? 0 : size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in || error) throw Error(Code::io, std::string("cannot be read: ") + std::strerror(errno), whole.string());
  return text;
}

}  // namespace shoal::observe
