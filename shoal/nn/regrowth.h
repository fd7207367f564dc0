// How members who train on with fewer come to be all again (net::OnPeerLost::regrow). Each member sees at a moment of its own that others have come, or that
// what they were told is there. So it says with each step what it is ready for; a step is done by all that are left or by none, and what all said alike they do
// together before the next one:
//
//   feed   The next job is there (coming.h), and those who came wait in it for the state: from here on each member tells them its share of it, as it is
//          between these two steps, and of what each step does to it (collective/feed.h).
//   move   They have the state; what is missing is the steps since: all go on over the next job. Or somebody was lost in it, and who
//          comes waits for those who train: nobody is fed, the state is brought when all have moved (session_others.cc).
//
// Whoever is lost on the way ends what had begun: the next job is left for a later one, in which all can be.
//
// Threads: one at a time, never the loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shoal/collective/feed.h"
#include "shoal/nn/coming.h"
#include "shoal/nn/session_group.h"

namespace shoal::nn {

class Regrowth {
 public:
  struct Channels {
    std::uint16_t survivors, feed;
  };
  Regrowth(JoinAgain join, Channels channels) : coming_(std::move(join)), channels_(channels) {}

  // Others are to come in place of these, lost in the job `now`. Again with each loss; the same ones again are no news.
  void look_for(const net::Place& now, const std::vector<net::Rank>& lost);

  // With a step of fewer, once its means are there: what this member is ready for, in words; nothing: to go on as before. `here`: who is left. Asked again where the
  // step is done again: what changes here is this member's own sight, and what was said last counts. Only heard() is agreed: what all of them said, by place.
  std::string ready(const std::vector<net::Rank>& here);
  void heard(const std::vector<std::string>& said);

  // What all are to do before the next step.
  bool is_to_feed() const { return to_do_ == Stage::feed && !feed_; }
  bool is_to_move() const { return to_do_ == Stage::move; }
  const std::vector<net::Rank>& ahead() const { return ahead_; }  // who will be in the next job, as they agreed: where all are to move

  // giver: this member's place among the `givers` that are left. lost: to whom.
  void begin_feed(net::Rank giver, net::Rank givers, std::vector<net::Rank> lost, const collective::Feed::Parts& state, Nanoseconds patience);
  bool feeds() const { return feed_ != nullptr; }  // it is to be told what each step does
  void feed(const collective::Feed::Parts& piece, Nanoseconds patience);  // who has not taken enough of it by then is not waited for any more
  bool feeds_last() const { return feed_ && feed_->is_first(); }         // it is this member that gives the last piece, whole
  void feed_last(const collective::Feed::Parts& piece, Nanoseconds patience) { feed_->give(piece, patience, true); }
  // Whether it is this member that says what all who fed have, the same: one of these.
  bool tells(net::Rank rank, const std::vector<net::Rank>& members) const;
  void end_feed() { feed_.reset(); }  // all have moved, and hold together what was fed
  std::shared_ptr<SessionGroup> take_next();  // to move to

 private:
  enum class Stage { train, feed, move };
  void forget_next();
  void look_for_another();  // job: this one is none in which all can be

  Coming coming_;
  const Channels channels_;
  std::vector<net::Rank> told_lost_;     // to those who bring others, of the job of now
  std::shared_ptr<SessionGroup> next_;   // has come
  std::vector<net::Rank> ahead_;
  Stage ready_for_ = Stage::train, to_do_ = Stage::train;
  std::string said_;
  std::vector<net::Rank> fed_;              // who is
  std::unique_ptr<collective::Feed> feed_;  // over next_: last
};

}  // namespace shoal::nn
