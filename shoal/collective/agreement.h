// What a group of members that may lose some agrees on: one fate for each operation that they do together, without a coordinator.
//
// Operations are numbered 0, 1, .. and done one after the other. A member *holds* an operation when all of its result is there, with every
// contribution of the attempt's members. Nobody's caller hears of a result before all members of the attempt hold it, and told each other so; until
// then inputs are kept. So when a member is lost everything can still be undone, or everybody has everything.
//
// A *view* is what a member knows when it votes: who is lost, and how often an operation was to be given up (a deadline). Views only grow. Whoever
// learns of a loss stops its attempt, joins what it has learned to its view and votes: tells everybody the view and how many operations it
// holds. Whoever hears of a greater view joins it and votes, too. A vote stands for its view; it does not change. When all that a view counts as living
// have voted for exactly this view, it is *concluded*, and each operation's fate is a function of the votes alone.
//
// Invariants
// 1. A member's views form a chain, so any two views that are concluded are ordered: with a vote of a member that lives in both.
// 2. Between its first vote for a view and the conclusion a member begins no attempt and comes to hold nothing: what it voted is true.
// 3. Held operations of any two differ by at most one: who begins the next knows that all held the last.
// 4. A result that somebody's caller has heard of is held by all who live; so no later view has it done again. What a member gave up it says in
//    every later vote; so nobody commits it.
// (After flooding consensus with a perfect failure detector: Chandra and Toueg, JACM 43(2), 1996, section 4; the detector is net/losses.h.)
//
// Pure logic; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <cstddef>

namespace shoal::collective {

struct View {
  std::vector<bool> lost;    // by place in the group
  std::uint32_t rounds = 0;  // in which an operation was to be given up
  bool operator==(const View&) const = default;
  std::uint64_t epoch() const;        // of concluded views: each has another, the later the greater
  bool join(const View& other);       // true: it grew
  std::uint32_t living() const;
};

struct Vote {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  View view;
  std::uint64_t held = 0;             // operations 0 .. held-1 are, or were given up
  std::uint64_t given_up = 0;         // bit j: operation held-1-j was
  std::uint64_t gives_up = kNone;     // the operation that this member wants to give up in this view
};

class Agreement {
 public:
  Agreement(std::uint32_t size, std::uint32_t self);

  enum class Fate { committed, again, given_up };

  std::uint32_t self() const { return self_; }
  const View& view() const { return view_; }            // what this member knows
  const View& concluded() const { return concluded_; }  // what its group goes by
  bool deciding() const { return !(view_ == concluded_); }
  std::uint64_t held() const { return held_; }

  // Each returns true if this member has a vote to cast by it: next_vote() is to be told to everybody who lives.
  bool lose(std::uint32_t place);
  bool give_up(std::uint64_t operation);
  bool heard(std::uint32_t from, const Vote& vote);
  Vote next_vote();

  void hold(std::uint64_t operation);       // not while deciding
  // True once for each view that all have voted for; then fate() speaks of operations that this member has not finished.
  bool conclude();
  Fate fate(std::uint64_t operation) const;

 private:
  const std::uint32_t self_;
  View view_, concluded_;
  std::vector<Vote> votes_;                 // the latest, by place
  bool cast_ = true;                        // for view_
  std::uint64_t held_ = 0, given_up_ = 0, least_held_ = 0;
  std::uint64_t gives_up_ = Vote::kNone;    // with the next vote
  bool somebody_gave_up(std::uint64_t operation) const;
};

// As bytes, in the size that a group's size needs. nullopt: not the vote of a member of such a group.
std::size_t vote_bytes(std::uint32_t size);
void encode(const Vote& vote, std::span<std::byte> into);
std::optional<Vote> decode_vote(std::span<const std::byte> bytes, std::uint32_t size);

}  // namespace shoal::collective
