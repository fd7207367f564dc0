// A snapshot of a table on the disk: a folder that holds
//
//   part-K-of-N-ID.shoal   the rows of server K (part_file.h); each is there whole or not at all
//   table.json             which snapshot this is, written last: without it there is none, and with it older parts mean nothing
//
// A snapshot that fails leaves the one before as it was. Where members have disks of their own, each holds its servers' parts, and one of
// them the index. What is read may be anything: it is checked. Values; threads: any, one for each folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "shoal/table/spec.h"

namespace shoal::table {

struct Cut {               // what was taken
  Spec spec;
  Clock clock = 0;         // every increment with a timestamp below it, as far as the consistency tells clocks apart
  Rule rule{};             // in force then
  std::string id;          // 16 hexadecimal digits, of this snapshot alone
  std::uint32_t parts = 0; // how many servers the table had
  std::int64_t time = 0;   // when it was asked for: seconds since 1970
};

std::string text_of(const Cut& cut);                                  // JSON
Cut cut_from(const std::string& text, const std::filesystem::path& file);  // throws Error{invalid_argument} naming the file
bool is_id(const std::string& text);

std::filesystem::path part_file(const std::filesystem::path& folder, const Cut& cut, std::uint32_t part);
// nullopt: there is none. Throws Error{io, invalid_argument} naming the file.
std::optional<Cut> read_index(const std::filesystem::path& folder);
void write_index(const std::filesystem::path& folder, const Cut& cut);  // throws Error{io} naming the file
// This process writes a snapshot into the folder: another one would take its parts for old ones. Throws Error{invalid_argument} where one does already.
class FolderClaim {
 public:
  explicit FolderClaim(std::filesystem::path folder);
  ~FolderClaim();
  FolderClaim(const FolderClaim&) = delete;
  FolderClaim& operator=(const FolderClaim&) = delete;

 private:
  const std::filesystem::path folder_;
};

// Removes what there is of this part in other snapshots, and what its writers left that died; the last part also removes those beyond it. Parts that
// others write stay: they may be of the next snapshot, which has begun in the same folder. Never throws: what stays does no harm.
void keep_parts(const std::filesystem::path& folder, const std::string& id, std::uint32_t part, std::uint32_t parts);

}  // namespace shoal::table
