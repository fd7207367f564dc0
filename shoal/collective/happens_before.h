// What is known to be done when an instance touches its data, however quick or slow anybody is: happens-before (Lamport, CACM 21, 1978).
// Internal to the verifier.
//
// An instance begins after those it waits for are done, and after the one in front of it in its lane has begun. It touches its data then;
// a receive not before its send has begun. It is done after that; a receive also after its send is done, and each after the one before it
// in its *chain*: a stream's sends, its receives, or the local ops of a lane. Slice by slice the same holds along one chunk, and a wait
// for another chunk is for its last slice; so one relation between instances speaks for all slices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shoal/collective/unroll.h"
#include "shoal/collective/waits.h"

namespace shoal::collective {

struct Question {                // is `earlier` known to be done when `later` touches its data?
  std::uint32_t earlier, later;  // places in one chunk's history
  std::uint32_t about;           // the caller's
};

inline constexpr std::uint32_t kMaxOfChunk = 1U << 21;  // instances; 128 bytes each while a chunk is looked at

class HappensBefore {
 public:
  HappensBefore(const Unrolled& program, const Histories& histories);

  // The chunk of the questions that follow. Throws Error{unsupported} where it has more than kMaxOfChunk instances.
  void look_at(std::uint32_t chunk);
  // One of `questions` to which the answer is no. Ways along the chunk alone, which nearly all ways are, are looked at for 512 questions at once:
  // O(ops^2 / 64) in all; where they do not say yes, all ways are. Throws Error{unsupported} where a program needs too many such answers.
  std::optional<Question> refuted(std::vector<Question> questions);

 private:
  struct Causes {          // of one instance, in its chunk: places; kNone: none
    std::uint32_t in_lane = kNone, in_chain = kNone, partner = kNone;
    std::uint32_t first_after = 0, last_after = 0;
  };
  bool same_chain(std::uint32_t a, std::uint32_t b) const;
  std::optional<Question> sweep(const std::vector<std::uint32_t>& columns, std::vector<Question>& questions);
  bool known_by_any_way(std::uint32_t earlier, std::uint32_t later);  // instances

  const Unrolled& all_;
  const Histories& histories_;
  std::span<const std::uint32_t> history_; // of the chunk that is looked at
  std::vector<Causes> causes_;             // [place]
  std::vector<std::uint32_t> afters_;
  std::vector<std::uint32_t> last_of_row_; // [row]: place of its last instance so far in this chunk, else kNone
  std::vector<std::uint64_t> begun_, done_;  // [place from the first column's][word]: what is known
  std::vector<bool> seen_;                 // known_by_any_way(): 2 x instance, plus 1 for done
  std::uint64_t looked_at_ = 0;
};

}  // namespace shoal::collective
