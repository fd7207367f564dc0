// What a server does for snapshots: it walks through the image of its rows, a chunk a turn of the loop, and a thread for the disk writes what
// it is handed, of which only so much is under way. When its part has its name it says so to who asked; what goes wrong it says in
// one line, and nothing is left of the part.
//
// Threads: the transport's loop. Lifetime: what it hands to the disk holds it.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "shoal/net/transport.h"
#include "shoal/table/image.h"
#include "shoal/table/message.h"
#include "shoal/table/server_bytes.h"
#include "shoal/table/snapshot_folder.h"

namespace shoal::table {

using OnDisk = std::function<void(std::function<void()> job)>;  // runs it in order, at once or on another thread

// A message of kind save or keep: which snapshot, and where.
struct SaveRequest {
  std::string id;
  std::int64_t time = 0;
  std::filesystem::path folder;       // absolute

  Message message(Kind kind, std::uint64_t table) const;         // throws Error{invalid_argument} where the path is too long
  static SaveRequest from(const Message& message);               // throws Error{mismatch}
};

class Saves : public std::enable_shared_from_this<Saves> {
 public:
  using Answer = std::function<void(net::Rank to, Message message)>;
  // part: the shard's number, of cut.parts.
  Saves(net::Transport& transport, OnDisk disk, std::uint32_t part, std::uint32_t parts, Answer answer);
  // clock: of the cut; rule: in force then. `image` is walked through from here on. moved: counts what is written.
  void begin(net::Rank by, const Message& request, const Spec& spec, Clock clock, const Rule& rule, std::unique_ptr<Image> image,
             std::shared_ptr<ServerBytes> moved);
  void keep(const Message& request);
  void end();                         // images are let go, and nobody is answered any more

 private:
  struct Save;
  void step(const std::shared_ptr<Save>& save);
  void written(const std::shared_ptr<Save>& save, bool last, const std::shared_ptr<const std::string>& fault);

  net::Transport& transport_;
  const OnDisk disk_;
  const std::uint32_t part_, parts_;
  Answer answer_;                     // empty: it has ended
  std::set<std::shared_ptr<Save>> saves_;  // under way
};

}  // namespace shoal::table
