// This process's place in a training run: the job, the runner of its collectives, and the few blocking collectives that
// starting, agreeing and ending need. Gradients do not come through here: see data_parallel.h.
//
// Where the job goes on without members that are lost (OnPeerLost::shrink), what members do together is done by all that are left, or by none
// (collective/joint.h). Each of the blocking collectives here is one such operation; together() makes one of several.
//
// Lifetime: everything that uses the session ends before it. Threads: one at a time, never the transport's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shoal/collective/select.h"
#include "shoal/collective/survivors.h"
#include "shoal/collective/started.h"
#include "shoal/net/job.h"
#include "shoal/nn/said.h"

namespace shoal::nn {

class Session {
 public:
  // patience: the longest wait for the others in any operation (SHOAL_TIMEOUT).
  Session(std::unique_ptr<net::Job> job, Nanoseconds patience);
  ~Session();

  net::Rank rank() const { return job_->place().rank; }
  net::Rank size() const { return job_->place().size; }
  net::Rank place() const { return runner_ ? runner_->rank() : 0; }    // among those that are left, by rank: as all members' weights are
  net::Rank living() const { return runner_ ? runner_->size() : 1; }   // how many those are
  std::vector<net::Rank> members() const { return runner_ ? runner_->members() : std::vector<net::Rank>{rank()}; }  // their ranks, by place
  bool outlives_losses() const { return survivors_ != nullptr; }
  Nanoseconds patience() const { return patience_; }
  net::Job& job() { return *job_; }
  net::Transport& transport() { return job_->transport(); }  // only where size() > 1
  collective::Runner& runner() { return *runner_; }          // only where size() > 1; of those that are left, as of the last together()
  // Another number after each change of the runner, the same on all members.
  std::uint64_t generation() const { return generation_; }
  // Runs `part` until all that are left have done it; inside of another one it belongs to that. It may run again: it writes nothing that it reads.
  // Throws what the part throws, but for a lost member.
  void together(const std::string& label, const std::function<void()>& part);
  std::uint16_t new_channel() { return ++last_channel_; }    // the same sequence on all members

  // Of the links between the members, measured by all of them together at the first call; later calls remember. Its `network`, from
  // which "trees" are made, is
  //   SHOAL_TOPOLOGY=FILE     a topology (shoal topo), host i for rank i; rank 0 reads it and tells the others
  //   SHOAL_TOPOLOGY=measure  measured link by link (collective/probe_together.h), some seconds
  //   SHOAL_TOPOLOGY=none     not known
  //   otherwise measured where three members and more on several hosts send to each other at unequal rates, else not known.
  // SHOAL_TUNE (collective/tuning.h) is its `tuning`. Rank 0's variables count. Throws Error{invalid_argument} on rank 0 for a file
  // that is wrong or has not a host for every member.
  const collective::LinkModel& link_model();
  const collective::LinkModel& measure_links_again();  // all members together

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
  collective::Started start(const collective::Program& program, const collective::Layout& layout, collective::Buffers buffers,
                            const std::string& label);
  void wait(collective::Started& started);
  std::shared_ptr<const collective::KnownNetwork> find_network(const Said& said, const collective::LinkModel& link);
  std::vector<std::string> gather_once(const std::string& own, const std::string& label);
  std::uint64_t take_operations(std::uint64_t count);  // the first of so many numbers
  void let_go(std::shared_ptr<void> of_the_loop);

  std::unique_ptr<net::Job> job_;
  std::shared_ptr<collective::Runner> runner_;  // given up on the loop
  std::vector<std::shared_ptr<collective::Runner>> before_;  // those of groups that lost members: what uses them ends before this session
  std::shared_ptr<collective::Survivors> survivors_;
  bool together_ = false;
  std::uint64_t operation_ = 0;                 // the next of the part that is run together
  std::uint64_t generation_ = 0;
  const Nanoseconds patience_;
  std::uint16_t last_channel_ = 0;
  const std::uint16_t channel_;
  std::uint64_t next_operation_ = 0;
  std::optional<collective::LinkModel> link_model_;
};

}  // namespace shoal::nn
