// Programs that were made for networks, kept in files: whoever asks for one again need not compute it again.
//
//     FOLDER/programs/<digest of the topology>-all_reduce-trees-0-v1.program.json
//
// A file is believed no more than any other. It counts if it is a program of this name (or one that begins so: blink_servers is blink's), collective, size
// and root that the verifier proves and whose certificate holds here (certificate.h); else it is written anew. So what comes out of it is right, and as fast
// as it says; one slower than could be made is not found out (choose() takes it only where it is the cheaper). Files are written aside and renamed: any
// number of processes may share a folder, the last one's is kept, and all have made the same. Where the folder cannot be written to, nothing is kept. It
// holds at most kMostKeptBytes of them; what was not used for longest goes first. A value; share across threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "shoal/collective/program.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

class ProgramCache {
 public:
  static constexpr std::uintmax_t kMostKeptBytes = 64 << 20;

  ProgramCache() = default;  // keeps nothing
  explicit ProgramCache(std::filesystem::path folder, std::uintmax_t most_bytes = kMostKeptBytes);
  // SHOAL_CACHE, a folder (or `none`: nothing is kept); without it XDG_CACHE_HOME/shoal, or HOME/.cache/shoal. Throws Error{invalid_argument} for a
  // SHOAL_CACHE that is no folder and cannot be made one: somebody said it, so that somebody wants to know.
  static ProgramCache of_user();

  // The program of that name for this collective, topology and root, kept or made. Throws what `make` throws, nothing of its own.
  Program kept_or_made(const topo::Topology& topology, Collective collective, const std::string& name, std::uint32_t root,
                       const std::function<Program()>& make) const;

 private:
  std::optional<Program> kept(const std::filesystem::path& file, const topo::Topology& topology, Collective collective,
                              const std::string& name, std::uint32_t root) const;
  void keep(const std::filesystem::path& file, const Program& program) const;
  void make_room() const;

  std::filesystem::path folder_;  // empty: keeps nothing
  std::uintmax_t most_bytes_ = kMostKeptBytes;
};

}  // namespace shoal::collective
