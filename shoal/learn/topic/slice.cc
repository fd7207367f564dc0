#include "shoal/learn/topic/slice.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "shoal/core/error.h"
#include "shoal/core/varint.h"

namespace shoal::learn::topic {
namespace {

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint32_t number() {
    const auto number = take_varint(bytes_, kLongestVarint32);
    if (!number || *number > UINT32_MAX) refuse();
    return static_cast<std::uint32_t>(*number);
  }
  std::size_t left() const { return bytes_.size(); }
  [[noreturn]] static void refuse() {
    throw Error(Code::mismatch, "what came is no slice of a topic model", "", "run the same program on all members");
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

std::uint32_t Slice::room_for(std::uint32_t size) { return size <= 1 ? 0 : std::bit_ceil(size); }

void Slice::make_room(Row& row, std::uint32_t size) {
  if (row.room != 0) free_[static_cast<std::size_t>(std::countr_zero(row.room))].push_back(row.begin);
  row.room = room_for(size);
  if (row.room == 0) return;
  std::vector<std::uint64_t>& places = free_[static_cast<std::size_t>(std::countr_zero(row.room))];
  if (!places.empty()) {
    row.begin = places.back();
    places.pop_back();
    return;
  }
  row.begin = memory_.size();
  const std::size_t end = memory_.size() + row.room;
  if (end > memory_.capacity()) memory_.reserve(end + end / 4);  // less than a vector takes by itself: rows are most of a model's memory
  memory_.resize(end);
}

void Slice::store(std::uint32_t place, std::span<const TopicCount> counts) {
  Row& row = rows_[place];
  const auto size = static_cast<std::uint32_t>(counts.size());
  if (size > std::max(row.room, 1u) || size < row.room / 4) make_room(row, size);
  pairs_ = pairs_ - row.size + size;
  needed_ = needed_ - room_for(row.size) + room_for(size);
  row.size = size;
  std::ranges::copy(counts, row.room == 0 ? &row.only : memory_.data() + row.begin);
}

Slice Slice::compacted() const {
  Slice compact(words());
  compact.memory_.reserve(needed_);
  for (std::uint32_t place = 0; place < words(); ++place) compact.store(place, row(place));
  compact.topics_ = topics_;
  return compact;
}

Bytes Slice::packed() const {
  std::vector<std::byte> buffer(kLongestVarint32 * (1 + rows_.size() + 2 * pairs_));
  std::byte* at = put_varint(buffer.data(), words());
  for (std::uint32_t place = 0; place < words(); ++place) {
    at = put_varint(at, rows_[place].size);
    for (const auto& [topic, count] : row(place)) at = put_varint(put_varint(at, topic), count);
  }
  Bytes bytes(static_cast<std::size_t>(at - buffer.data()));
  std::memcpy(bytes.data(), buffer.data(), bytes.size());
  return bytes;
}

std::unique_ptr<Slice> Slice::unpacked(std::span<const std::byte> bytes) {
  FieldReader reader(bytes);
  const std::uint32_t words = reader.number();
  if (words > reader.left()) FieldReader::refuse();
  auto slice = std::make_unique<Slice>(words);
  std::vector<TopicCount> counts;
  for (std::uint32_t place = 0; place < words; ++place) {
    const std::uint32_t size = reader.number();
    if (size > reader.left() / 2) FieldReader::refuse();
    counts.resize(size);
    for (TopicCount& pair : counts) {
      pair.topic = reader.number();
      pair.count = reader.number();
      if (pair.count == 0 || pair.topic == UINT32_MAX) FieldReader::refuse();
      slice->topics_ = std::max(slice->topics_, pair.topic + 1);
    }
    slice->store(place, counts);
  }
  if (reader.left() != 0) FieldReader::refuse();
  return slice;
}

}  // namespace shoal::learn::topic
