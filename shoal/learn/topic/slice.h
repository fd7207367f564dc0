// How many tokens of each word of a slice have each topic (C_wk): rows of different lengths, which grow and shrink while they are sampled. A row of one
// topic, as most words have where there are millions of them, stands in the 16 bytes that each row has; a longer one in a piece of memory of all
// rows, with room for a power of two. A row's topics are in the order in which the sampler left them, and stay so on the way to another member.
// Values; threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/learn/topic/model.h"

namespace shoal::learn::topic {

class Slice {
 public:
  explicit Slice(std::uint32_t words) : rows_(words) {}

  std::uint32_t words() const { return static_cast<std::uint32_t>(rows_.size()); }
  // Until one is stored.
  std::span<const TopicCount> row(std::uint32_t place) const {
    const Row& row = rows_[place];
    return {row.room == 0 ? &row.only : memory_.data() + row.begin, row.size};
  }
  // `counts` must not be of this slice's own memory.
  void store(std::uint32_t place, std::span<const TopicCount> counts);
  // Of one row, in a slice that is laid out anew: bytes.
  static std::size_t memory_of(std::uint32_t topics) { return sizeof(Row) + room_for(topics) * sizeof(TopicCount); }
  std::size_t memory() const { return memory_.capacity() * sizeof(TopicCount) + rows_.capacity() * sizeof(Row); }  // bytes
  // Whether rows that were longer, or lay elsewhere, have left much room; and the same rows without it.
  bool is_wasteful() const { return memory_.size() > needed_ + needed_ / 4; }
  Slice compacted() const;

  // Variable-length integers: of each word how many topics, then topic and count of each.
  Bytes packed() const;
  // Throws Error{mismatch} for what is none; whether its words and topics are the reader's, these say.
  static std::unique_ptr<Slice> unpacked(std::span<const std::byte> bytes);
  Topic topics() const { return topics_; }  // those that came with it are below

 private:
  struct Row {
    union {
      std::uint64_t begin = 0;             // in memory_
      TopicCount only;                     // where there is no room
    };
    std::uint32_t size = 0, room = 0;      // room: a power of two; none for at most one topic
  };
  static std::uint32_t room_for(std::uint32_t size);
  void make_room(Row& row, std::uint32_t size);

  std::vector<Row> rows_;
  std::vector<TopicCount> memory_;
  std::vector<std::vector<std::uint64_t>> free_ = std::vector<std::vector<std::uint64_t>>(32);  // places, by the logarithm of their room
  std::uint64_t pairs_ = 0, needed_ = 0;   // of memory_: what rows take that are laid out anew
  Topic topics_ = 0;
};

}  // namespace shoal::learn::topic
