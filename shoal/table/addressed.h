// Rows to the servers that own them. Values; threads: pure functions.
#pragma once

#include <span>
#include <vector>

#include "shoal/table/message.h"
#include "shoal/table/placement.h"

namespace shoal::table {

// Messages by shard, with the keys in their order; each with as many as rows of row_bytes fit in one. values: a row for each key, of equal
// length, or none.
template <class T>
std::vector<std::vector<Message>> addressed(const Placement& placement, Kind kind, std::uint64_t table, std::span<const Key> keys,
                                            std::span<const T> values, std::size_t row_bytes) {
  std::vector<std::vector<Message>> messages(placement.shards());
  const std::size_t width = keys.empty() ? 0 : values.size() / keys.size(), most = rows_a_message(row_bytes);
  std::vector<std::vector<std::size_t>> places(placement.shards());
  for (std::size_t i = 0; i < keys.size(); ++i) places[placement.shard_of(keys[i])].push_back(i);
  for (std::size_t shard = 0; shard < places.size(); ++shard) {
    for (std::size_t begin = 0; begin < places[shard].size(); begin += most) {
      const std::size_t count = std::min(most, places[shard].size() - begin);
      Message message = Message::of_rows(kind, table, count, width * sizeof(T));
      T* into = message.value_places<T>();
      for (std::size_t k = 0; k < count; ++k, into += width) {
        const std::size_t i = places[shard][begin + k];
        message.key_places()[k] = keys[i];
        set<T>({into, width}, values.subspan(i * width, width));
      }
      messages[shard].push_back(std::move(message));
    }
  }
  return messages;
}

}  // namespace shoal::table
