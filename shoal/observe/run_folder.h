// The folder that a run leaves behind: runs/<UTC>-<name>/ with
//   run.json  plan.json  events.jsonl  trace.json.gz  report.html  logs/rank-N.log
// and, while the run is under way, one events-N.jsonl a member. A value: a path that exists; share across threads.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace shoal::observe {

class RunFolder {
 public:
  // Makes `parent`/20261121T145815Z-`name` with logs/ inside; a second run of the same second gets -2 behind it.
  // Throws Error{invalid_argument} for a name that is not 1 to 64 letters, digits, dots, dashes and underscores, saying
  // `name_from` (the option that gave it), and for a parent that cannot be written.
  static RunFolder create(const std::filesystem::path& parent, const std::string& name, const std::string& name_from);
  // Any text as a name: other characters become underscores, the rest of a long one is cut.
  static std::string fitting(const std::string& text);
  // An existing one. Throws Error{invalid_argument}.
  static RunFolder open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return path_.filename(); }
  std::filesystem::path events_of(int rank) const;    // events-N.jsonl
  std::vector<std::filesystem::path> event_files() const;  // those there are, by rank

  // Puts a whole file under its name, or leaves what was there (core/aside.h). Error{io} names the file.
  void write(const std::string& file, const std::string& text) const;
  // The text of a file of at most `most_bytes`; nothing where there is none. Throws Error{io}.
  std::optional<std::string> read(const std::string& file, std::size_t most_bytes) const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace shoal::observe
