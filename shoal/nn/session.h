// This process's place in a training run: the job, the runner of its collectives, and the few blocking collectives that
// starting, agreeing and ending need. Gradients do not come through here: see data_parallel.h.
//
// Lifetime: everything that uses the session ends before it. Threads: one at a time, never the transport's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shoal/collective/select.h"
#include "shoal/collective/started.h"
#include "shoal/net/job.h"

namespace shoal::nn {

class Session {
 public:
  // patience: the longest wait for the others in any operation (SHOAL_TIMEOUT).
  Session(std::unique_ptr<net::Job> job, Nanoseconds patience);
  ~Session();

  net::Rank rank() const { return job_->place().rank; }
  net::Rank size() const { return job_->place().size; }
  Nanoseconds patience() const { return patience_; }
  net::Job& job() { return *job_; }
  net::Transport& transport() { return job_->transport(); }  // only where size() > 1
  collective::Runner& runner() { return *runner_; }          // only where size() > 1
  std::uint16_t new_channel() { return ++last_channel_; }    // the same sequence on all members

  // Of the links between the members, measured by all of them together at the first call; later calls remember. Its `network`, from
  // which "trees" are made, is
  //   SHOAL_TOPOLOGY=FILE     a topology (shoal topo), host i for rank i; rank 0 reads it and tells the others
  //   SHOAL_TOPOLOGY=measure  measured link by link (collective/probe_together.h), some seconds
  //   SHOAL_TOPOLOGY=none     not known
  //   otherwise measured where three members and more on several hosts send to each other at unequal rates, else not known.
  // Rank 0's variable counts. Throws Error{invalid_argument} on rank 0 for a file that is wrong or has not a host for every member.
  const collective::LinkModel& link_model();
  const collective::LinkModel& measure_links_again();  // all members together

  // A broadcast under way: `bytes` stay valid until wait() has returned or thrown, or cancel() has returned.
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
  std::vector<std::string> gather_text(const std::string& own, const std::string& label);  // everybody's, by rank

 private:
  collective::Started start(const collective::Program& program, const collective::Layout& layout, collective::Buffers buffers,
                            const std::string& label);
  void wait(collective::Started& started);
  std::shared_ptr<const collective::KnownNetwork> find_network(const collective::LinkModel& link);
  std::uint64_t take_operations(std::uint64_t count);

  std::unique_ptr<net::Job> job_;
  std::shared_ptr<collective::Runner> runner_;  // given up on the loop
  const Nanoseconds patience_;
  std::uint16_t last_channel_ = 0;
  const std::uint16_t channel_;
  std::uint64_t next_operation_ = 0;
  std::optional<collective::LinkModel> link_model_;
};

}  // namespace shoal::nn
