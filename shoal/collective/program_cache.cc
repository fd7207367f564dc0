#include "shoal/collective/program_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "shoal/collective/synthesize.h"
#include "shoal/collective/verify.h"
#include "shoal/core/aside.h"
#include "shoal/core/error.h"
#include "shoal/core/read_text.h"
#include "shoal/net/environment.h"

namespace shoal::collective {
namespace fs = std::filesystem;
namespace {

constexpr int kSynthesisVersion =
    2;  // to be raised where synthesize() comes to make other programs: older ones are then not found
constexpr const char* kEnding = ".program.json";

}  // namespace

ProgramCache::ProgramCache(fs::path folder, std::uintmax_t most_bytes)
    : folder_(std::move(folder) / "programs"), most_bytes_(most_bytes) {}

ProgramCache ProgramCache::of_user() {
  if (const auto said = net::variable("SHOAL_CACHE")) {
    if (*said == "none") return {};
    ProgramCache cache(*said);
    std::error_code error;
    if (!fs::create_directories(cache.folder_, error) && error) {
      throw Error(Code::invalid_argument, fmt::format("cannot make {}: {}", cache.folder_.string(), error.message()), "SHOAL_CACHE",
                  "a folder, or none: nothing is kept");
    }
    return cache;
  }
  if (const auto caches = net::variable("XDG_CACHE_HOME"); caches && fs::path(*caches).is_absolute())
    return ProgramCache(fs::path(*caches) / "shoal");
  if (const auto home = net::variable("HOME")) return ProgramCache(fs::path(*home) / ".cache" / "shoal");
  return {};
}

Program ProgramCache::kept_or_made(const topo::Topology& topology, Collective collective, const std::string& name,
                                   std::uint32_t root, const std::function<Program()>& make) const {
  if (folder_.empty()) return make();
  const fs::path file = folder_ / fmt::format("{}-{}-{}-{}-v{}{}", topo::digest(topology), collective::name(collective), name,
                                              root, kSynthesisVersion, kEnding);
  if (std::optional<Program> program = kept(file, topology, collective, name, root)) return *std::move(program);
  Program program = make();
  if (program.certificate) keep(file, program);
  return program;
}

std::optional<Program> ProgramCache::kept(const fs::path& file, const topo::Topology& topology, Collective collective,
                                          const std::string& name, std::uint32_t root) const {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return std::nullopt;
  try {
    Program program = program_from_json(read_text(file));
    if (!program.name.starts_with(name) || program.collective != collective || program.root != root ||
        program.ranks != topology.hosts.size())
      return std::nullopt;
    verify(program);
    check_certificate(program, topology);
    fs::last_write_time(file, fs::file_time_type::clock::now(), none);  // used now
    return program;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void ProgramCache::keep(const fs::path& file, const Program& program) const {
  try {
    const std::string text = to_json(program);
    if (text.size() > most_bytes_ || (fs::exists(file) && !fs::is_regular_file(file))) return;  // a pipe would wait for a reader
    fs::create_directories(folder_);
    write_aside(file, text);
    make_room();
  } catch (const std::exception&) {  // a folder that cannot be had, a disk that is full: the program is there all the same
  }
}

// What others remove or write meanwhile is counted as it is found.
void ProgramCache::make_room() const {
  struct File {
    fs::file_time_type used;
    fs::path path;
    std::uintmax_t bytes;
  };
  std::vector<File> files;
  std::uintmax_t all = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    std::error_code gone;
    if (!entry.path().string().ends_with(kEnding) || !entry.is_regular_file(gone)) continue;
    const File file{entry.last_write_time(gone), entry.path(), entry.file_size(gone)};
    if (gone) continue;
    files.push_back(file);
    all += file.bytes;
  }
  std::ranges::sort(files, {}, &File::used);
  for (const File& file : files) {
    if (all <= most_bytes_) return;
    std::error_code ignored;
    fs::remove(file.path, ignored);
    all -= file.bytes;
  }
}

}  // namespace shoal::collective
