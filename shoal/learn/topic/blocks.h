// A worker's documents in blocks, one after another. A single block stays in memory. Of several, two have room there: while one is worked on, the one
// before it is written back and the one behind it read, from a file without a name; so whoever goes through them in order rarely waits. The numbers of
// a block are the same when it comes again, to the bit.
//
// Invariants
//   1. What is in the file of a block that is not in memory is the block as it was left.
//   2. One thread moves blocks, in order: the other block in memory is its own from enter() until the next enter().
//
// Threads: one, beside the one that it starts itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <vector>

#include "shoal/learn/topic/block.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

// Documents `begin` to `end` - 1 in parts of about as many tokens each: part i has those from [i] to [i + 1] - 1.
std::vector<std::size_t> parts_of(const text::Documents& documents, std::size_t begin, std::size_t end, std::uint32_t parts);

// Documents that are on disk leave this process's memory; they come back when they are read.
void leave_to_disk(const text::Documents& documents);

class Blocks {
 public:
  // count: 1, or more than 2. folder: for the file, where there are several. Throws Error{io} where it cannot be made, and in append() and enter()
  // when the disk is full.
  Blocks(std::uint32_t count, const std::filesystem::path& folder);
  ~Blocks();
  Blocks(const Blocks&) = delete;

  void append(Block block, std::size_t first_document);  // as often as `count` says, before anything else
  std::uint32_t count() const { return count_; }
  std::size_t first_document(std::uint32_t block) const { return first_documents_[block]; }
  std::size_t documents(std::uint32_t block) const { return count_ == 1 ? current_.documents() : extents_[block].documents; }
  std::uint64_t tokens() const { return tokens_; }       // of all
  std::size_t memory() const { return current_.memory() + other_memory_; }  // bytes

  // That block, in memory until the next call.
  Block& enter(std::uint32_t block);
  void changed() { changed_ = true; }  // by who changes the block that was entered: its topics or tables

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Extent {                      // of a block in the file: first what never changes
    std::uint64_t begin = 0;
    std::size_t runs = 0, slices = 0, tokens = 0, documents = 0, entries = 0;
    unsigned shift = 0;
    std::uint32_t longest_table = 0, first_long = 0, first_whole = 0;
  };
  void write(const Block& block, const Extent& extent, bool whole) const;
  void read(Block& block, const Extent& extent) const;
  [[noreturn]] void refuse(const char* what) const;

  const std::uint32_t count_;
  const std::filesystem::path folder_;
  int file_ = -1;
  std::uint64_t end_ = 0;              // of the file
  std::vector<Extent> extents_;
  std::vector<std::size_t> first_documents_;
  std::uint64_t tokens_ = 0;
  Block current_, other_;
  std::uint32_t in_current_ = kNone, in_other_ = kNone;
  std::size_t other_memory_ = 0;       // of the largest block, where there are several
  bool changed_ = false;
  std::future<void> moving_;           // writes other_ back and reads the next into it
};

}  // namespace shoal::learn::topic
