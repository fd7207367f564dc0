// This process's place in a training run: the job, the runner of its collectives, and the few blocking collectives that
// starting, agreeing and ending need. Gradients do not come through here: see data_parallel.h.
//
// Where the job goes on without members that are lost (net::goes_on()), what members do together is done by all that are left, or by none
// (collective/joint.h). Each of the blocking collectives here is one such operation; together() makes one of several.
//
// Where others come in place of those that are lost (OnPeerLost::rejoin) this holds between the steps of training, too. A step waits for them: the
// session then moves to a new job with all of them, its *group*, and those who came take over the state of the others before any goes on.
//
// Where no step waits for them (OnPeerLost::regrow) that job is formed beside the one of now, and those who come are told the state and what each step does to
// it, until all move between the same two steps (regrowth.h, move_on()). Where they do not have it then, as digests tell, it is brought to them while all wait.
//
// Where what members do can go on with more of them (wait_for_more()) others may join a run that has lost nobody: the group of now ends as by a loss, and the
// next one has all, who came behind those that were there.
//
// Lifetime: everything that uses the session ends before it. Threads: one at a time, never the transport's loop.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "shoal/collective/link_rates.h"
#include "shoal/collective/select.h"
#include "shoal/collective/survivors.h"
#include "shoal/collective/started.h"
#include "shoal/net/job.h"
#include "shoal/nn/regrowth.h"

namespace shoal::nn {

class Session {
 public:
  // patience: the longest wait for the others in any operation (SHOAL_TIMEOUT); of a member that only serves without an end.
  // join_again (net::join_again): given where others come in place of lost members, else empty.
  Session(std::unique_ptr<net::Job> job, Nanoseconds patience, JoinAgain join_again = {});
  ~Session();

  net::Rank rank() const { return place_.rank; }
  net::Rank size() const { return size_; }                             // of the group of now
  net::Rank place() const { return runner_ ? runner_->rank() : 0; }    // among those that are left, by rank: as all members' weights are
  net::Rank living() const { return runner_ ? runner_->size() : 1; }   // how many those are
  std::vector<net::Rank> members() const { return runner_ ? runner_->members() : std::vector<net::Rank>{rank()}; }  // their ranks, by place
  // Of a run in which some members only serve: the first ranks train. All of `size` where nobody serves.
  net::Rank workers() const { return workers_; }
  net::Rank servers() const { return size() - workers_; }
  bool serves() const { return rank() >= workers_; }   // this member
  // The workers' own session, by the same ranks, for all that servers have no part in. Needs servers; made on each worker, once. It holds this one's job.
  std::unique_ptr<Session> of_workers() const;
  bool outlives_losses() const { return survivors_ != nullptr; }
  bool rejoins() const { return static_cast<bool>(join_again_); }  // others come in place of lost members
  bool regrows() const { return regrowth_ != nullptr; }            // and no step waits for them
  Nanoseconds patience() const { return patience_; }
  net::Job& job() { return *group_->job; }
  net::Transport& transport() { return job().transport(); }  // only where size() > 1
  collective::Runner& runner() { return *runner_; }          // only where size() > 1; of those that are left, as of the last together()
  // Another number after each change of the runner, the same on all members. Any thread.
  std::uint64_t generation() const { return generation_; }
  // Keeps the job and the runners of now: for what goes on using them when the session has moved on.
  std::shared_ptr<const void> lease() const { return group(); }
  net::Failure failure() const;           // why the job has ended; nullptr while it has not. Any thread
  bool is_lost(net::Rank peer) const;     // in the group of now. Any thread
  net::LinkStats link(net::Rank peer) const;  // to all who have had that rank
  bool links_pack() const;                    // any of this member's has so far (core/packed_words.h)

  enum class With { who_is_left, all };  // all: where others come in place of lost members, waits for them
  // Runs `part` until all that are left have done it; inside of another one it belongs to that. It may run again: it writes nothing that it reads.
  // Throws what the part throws, but for a lost member.
  void together(const std::string& label, const std::function<void()>& part, With with = With::who_is_left);

  // This member came in place of a lost one, and does not have the others' state yet. Until arrive() it can do nothing together with them.
  bool arriving() const { return arriving_; }
  // The state that all members have alike: how one that is left writes it down, between two steps or while it waits for the means of one, and how one
  // that came takes it. write may be called again for the same.
  struct Carried {
    std::function<std::string()> write;
    std::function<void(std::span<const std::byte>)> take;
    // Where no step waits: the state that is fed, the same bytes on all, shown where it lies; what the first member feeds last, as all move; how one that came
    // follows what is fed behind the state, true with the last; and a digest of what it followed, or of the same on the others.
    std::function<void(const std::function<void(const collective::Feed::Parts&)>&)> show_fed;
    std::function<std::string()> write_last;
    std::function<bool(std::span<const std::byte>)> follow;
    std::function<std::uint64_t()> digest;
  };
  void carry(Carried state) { carried_ = std::move(state); }  // before the first step, and before arrive()
  bool carries() const { return static_cast<bool>(carried_.write); }
  void arrive();                                              // on those that came
  // From here on, in every group: who joins the run beside those that there are is met in the next one, and whatever they do in this one throws Error{peer_lost}.
  void wait_for_more();
  void stop_waiting_for_more();                               // what is left to do needs nobody else: until the next wait_for_more()
  // Where no step waits, between two steps and before this member does anything else with the others, there may be something to do: feed those who come, or
  // move on to them, which all do between the same two steps. Those who came have the state then. Returns whether this member has moved.
  bool may_move() const { return regrowth_ && (regrowth_->is_to_feed() || regrowth_->is_to_move()); }
  bool move_on();
  bool feeds() const { return regrowth_ && regrowth_->feeds(); }  // it is to be told what each step does
  void feed(const collective::Feed::Parts& piece) { regrowth_->feed(piece, patience_); }
  bool has_followed() const { return has_followed_; }  // this member, which came: nobody waited for its state
  // The ranks that take the next step, as far as anybody knows, ascending: the same on all members after a step.
  std::vector<net::Rank> members_ahead() const { return regrowth_ && regrowth_->is_to_move() ? regrowth_->ahead() : members(); }

  std::uint16_t new_channel() { return ++last_channel_; }    // the same sequence on all members

  // Of the links between the members, measured by all of them together at the first call; later calls remember. Its `network`, from
  // which "trees" are made, is what SHOAL_TOPOLOGY says, or members find (find_network.h); after losses, what is left of it.
  // SHOAL_TUNE (collective/tuning.h) is its `tuning`. Rank 0's variables count. Throws Error{invalid_argument} on rank 0 for a file
  // that is wrong or has not a host for every member.
  const collective::LinkModel& link_model();
  // All members together. A network that they found is measured again, too: its programs stay, and with them all bits, but after a loss what is left of
  // it goes by the new rates.
  const collective::LinkModel& measure_links_again();
  // After a step, by this member alone: what its link gives meanwhile (collective/link_rates.h). A rate that has changed is a note in the run.
  void look_at_links(std::int64_t step);
  // All members together, which links have changed so that a plan no longer fits: as all have seen it, without a pause. Measured again where what they
  // have seen does not explain it, or is not of all members.
  const collective::LinkModel& follow_links();
  void plan_is_another() { rates_.begin_again(); }  // links are like what comes over them by it
  // What is left of a network of all members, for those that are left: made by the first of them, so that all have the same; nullptr where nothing is
  // (KnownNetwork::around). Together, but for a network of whom all are left.
  std::shared_ptr<const collective::KnownNetwork> left_of(const std::shared_ptr<const collective::KnownNetwork>& whole);

  // Roots and orders below are places. A broadcast under way, to be waited for in the same together(): `bytes` stay valid until wait() has returned or thrown, or cancel() has returned.
  class Broadcast {
   public:
    void wait();    // throws what ended it
    void cancel();  // ends it here; waits only until its bytes are free

   private:
    friend class Session;
    Session* session_ = nullptr;
    std::optional<collective::Started> started_;
  };
  Broadcast start_broadcast(std::span<std::byte> bytes, net::Rank root, const std::string& label);
  void broadcast(std::span<std::byte> bytes, net::Rank root, const std::string& label);
  std::string broadcast_text(const std::string& text, net::Rank root, const std::string& label);
  std::vector<std::string> gather_text(const std::string& own, const std::string& label);  // everybody's, by place

 private:
  collective::LinkModel probe_those_left();
  const collective::LinkModel& measured(collective::LinkModel model);
  collective::Started start(const collective::Program& program, const collective::Layout& layout, collective::Buffers buffers,
                            const std::string& label);
  void wait(collective::Started& started);
  std::vector<std::string> gather_once(const std::string& own, const std::string& label);
  std::uint64_t take_operations(std::uint64_t count);  // the first of so many numbers
  struct Inside {  // of a part that is run together, whatever ends it
    explicit Inside(bool& on) : on_(on) { on_ = true; }
    ~Inside() { on_ = false; }
    bool& on_;
  };
  std::shared_ptr<SessionGroup> group_over(std::unique_ptr<net::Job> job) const;
  void enter(std::shared_ptr<SessionGroup> group);
  std::uint64_t generation_at(std::uint64_t epoch) const;  // of the group of now
  Nanoseconds patience_of_now() const;
  std::vector<net::Rank> missing() const;  // from here on session_others.cc
  bool has_more() const { return more_ && more_->have_come; }  // to meet in the next group, for which rank 0 has ended this one
  void join_anew();
  void move_to(std::shared_ptr<SessionGroup> next);
  bool bring_state(bool here);  // false: nobody there has it
  void follow(collective::Follower& follower);
  void look_for_others();

  std::shared_ptr<SessionGroup> group() const;       // any thread
  struct More {                               // others, who have come to join a group
    ~More();
    std::atomic<bool> have_come = false;
    std::jthread waiting;
    const pid_t owner = ::getpid();
  };
  net::Place place_;                          // of the start
  std::atomic<net::Rank> size_;
  net::Rank workers_;
  mutable std::mutex group_guard_;            // for who is on another thread
  std::shared_ptr<SessionGroup> group_;
  collective::Runner* runner_ = nullptr;      // the group's
  collective::Survivors* survivors_ = nullptr;
  const JoinAgain join_again_;
  std::unique_ptr<Regrowth> regrowth_;        // where no step waits
  bool waits_for_more_ = false;
  std::unique_ptr<More> more_;                // on rank 0
  Carried carried_;
  bool arriving_ = false, taking_over_ = false, has_followed_ = false;
  std::vector<net::LinkStats> links_before_;  // of groups that are over
  bool together_ = false;
  std::uint64_t operation_ = 0;                 // the next of the part that is run together
  std::atomic<std::uint64_t> generation_ = 0;
  const Nanoseconds patience_;
  std::uint16_t last_channel_ = 0;
  const std::uint16_t channel_, survivors_channel_, feed_channel_;
  std::uint64_t next_operation_ = 0;
  std::optional<collective::LinkModel> link_model_, measured_;      // as it is known, and as it was measured last
  unsigned changes_told_ = 0;                                       // of links
  collective::LinkRates rates_;                                     // of the plan that they go by
  std::shared_ptr<const collective::KnownNetwork> network_of_all_;  // as it was measured last, or said
  bool network_was_found_ = false;                                  // measured: nobody says it
};

}  // namespace shoal::nn
