// What members that are not alike have of a topic model's work. Time and memory are dealt by what each says that it brings: its threads, how quick they are
// (speed.h) and its memory. The same members have the same parts in every run, and the model the same bits, as long as no speed was measured anew.
//
//   time    the rotation has as many workers of a member as it has threads. Documents are dealt in proportion to threads and to how quick these are: each
//           thread of all members takes about as long for those that it has.
//   memory  a member that has no room for its part of the documents has as much as it has room for, and the others what is left, by their time.
//           Where all of them together have too little, all is by time again, and what is beyond memory lies on disk (blocks.h).
//
// Values; threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/data/read.h"
#include "shoal/learn/gather.h"
#include "shoal/net/transport.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

struct MemberPart;  // memory.h

// Of all members, by rank; without threads, of members that all have as many threads and no limit.
struct Dealing {
  std::vector<std::uint32_t> threads = {};
  std::vector<std::uint64_t> memory = {};  // bytes that each may take; 0: what it needs
  std::vector<std::uint32_t> speeds = {};  // of each one's threads, in parts of kFullSpeed
  std::vector<std::uint32_t> turns = {};  // of documents (data::Share)

  bool limited() const;  // whether some member may not take what it needs
  data::Share share(net::Rank rank, net::Rank members) const { return {rank, members, turns}; }
};

inline constexpr std::uint64_t kNoLimit = UINT64_MAX;
inline constexpr std::uint32_t kFullSpeed = 8;      // of the quickest threads

// What a member brings. room: tokens whose documents it has room for in memory; kNoLimit where it has no limit.
struct Brought {
  std::uint32_t threads = 1;
  std::uint64_t memory = 0, room = 0;
  std::uint32_t speed = kFullSpeed;  // of each thread
  std::uint64_t time() const { return std::uint64_t{threads} * speed; }  // what is dealt to it is in proportion to this
};
inline constexpr std::uint32_t kMostThreads = 4096;  // of a member

// Foreseen from what this member has read of the documents (memory.h), which need not be the part that it will have.
Brought brought(std::uint64_t memory, const text::Corpus& corpus, const MemberPart& part, std::uint32_t speed = kFullSpeed);

// Whose turn it is: nothing where all have one each. tokens: of all documents.
std::vector<std::uint32_t> turns_of(std::span<const Brought> members, std::uint64_t tokens);

// By all members alike, each with what it brings: the same for all. Throws Error{mismatch} where a member says something else.
Dealing agreed(Gather& gather, const Brought& own, std::uint64_t tokens);

}  // namespace shoal::learn::topic
