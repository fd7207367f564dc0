// Any bytes as what another member says it has kept of tables: refused, or shards that there are; and then concluded from or refused, as all members
// would. Run fuzz_table_kept [corpus folder].
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/table/kept.h"

SHOAL_FUZZ(table_kept, data, size) {
  using namespace shoal;
  using namespace shoal::table;
  const table::Placement placement({0, 1}, 2);
  const auto read = [&](const Message& message) {
    try {
      const std::vector<Told> told(2, told_from(message, 1, 2));
      const table::Placement all = agree(told).joined_by({0, 1});
      for (const Kept& one : told.front().kept) {
        if (one.shard >= all.shards()) std::abort();
      }
      const auto starts = conclude(told, all);
      for (const auto& [table, start] : starts) {
        if (start.holders.size() != all.shards()) std::abort();
      }
      for (const auto& [table, start] : starts) {
        for (const Moving& move : spread_over_joined(table, start.holders, all)) {
          if (move.to > 1 || move.shard >= all.shards()) std::abort();
        }
      }
    } catch (const Error&) {
    }
  };
  // As they are, with as many words as the first byte says; and behind how rows are dealt out, as this member does it.
  Message raw = Message::of_kind(Kind::kept, 0);
  raw.body = Bytes(size);
  std::copy_n(reinterpret_cast<const std::byte*>(data), size, raw.body.data());
  raw.header.length = static_cast<std::uint32_t>(size);
  raw.header.count = static_cast<std::uint32_t>(size / sizeof(Key));
  read(raw);
  const Message empty = message_of({true, placement, {}});
  const std::size_t dealt = empty.header.count - 1;  // behind it: how many there are
  Message whole = Message::of_rows(Kind::kept, 0, dealt + size / sizeof(Key), 0);
  std::copy_n(empty.keys().begin(), dealt, whole.key_places());
  std::memcpy(whole.key_places() + dealt, data, size / sizeof(Key) * sizeof(Key));
  read(whole);
  return 0;
}
