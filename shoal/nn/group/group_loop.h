// The part of a Group that lives on the transport's loop: open collectives, their deadlines, and what the other
// members say about theirs. See group.h.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "shoal/nn/group/group.h"
#include "shoal/nn/group/monitored_barrier.h"

namespace shoal::nn {

class Group::Loop : public std::enable_shared_from_this<Group::Loop> {
 public:
  Loop(net::Transport& transport, Settings settings);
  void listen();                                   // once, first
  void start(std::uint64_t sequence, Collect what, Nanoseconds patience, net::Done done);
  void send(net::Rank to, std::uint32_t tag, std::span<const std::byte> bytes, Nanoseconds patience, net::Done done);
  void receive(std::optional<net::Rank> from, std::uint32_t tag, std::span<std::byte> into, Nanoseconds patience,
               Points::Received done);
  void monitored_barrier(Nanoseconds patience, bool all_missing, net::Done done);
  void end(const net::Failure& why);               // all that waits, and all that comes later
  void abort(const Error& why);                    // the same here and on all other members
  void when_told(std::function<void()> fn);        // once all that this member has to say is with the kernel
  void close();                                    // end, and let go of the transport: once; what still comes is refused
  std::string waiting() const;

 private:
  struct Open {
    Collect what;
    Descriptor descriptor;
    Nanoseconds patience;
    net::Done done;
    std::uint64_t deadline = 0, announcement = 0;  // timers
    bool running = false;                          // handed to the runner
    std::vector<bool> entered;                     // by rank: said that it is in this collective
    std::vector<std::byte> copy;                   // of the input, where the program may not run in place
  };
  void run(std::uint64_t sequence);
  void announce(std::uint64_t sequence);
  void heard(net::Rank from, const Note& note);
  void compare(net::Rank from, std::uint64_t sequence, const Descriptor& theirs, const Descriptor& ours);
  void differ(const Note& verdict);
  void run_if_checked(std::uint64_t sequence);
  void timed_out(std::uint64_t sequence);
  void finish(std::uint64_t sequence, const net::Failure& failure);
  void stop_timers(Open& open);
  const collective::Verified& program(collective::Collective kind, const std::string& name, std::uint32_t root);

  net::Transport& transport_;
  const Settings settings_;
  const collective::LinkModel without_trees_;      // settings_.link for what has a layout of its own: trees have their own chunks
  std::unique_ptr<collective::Runner> runner_;
  std::unique_ptr<Notes> notes_;
  std::unique_ptr<Points> points_;
  std::unique_ptr<MonitoredBarrier> barrier_;
  net::Failure ended_;
  std::uint64_t started_ = 0;                      // the latest sequence that this member has entered
  std::map<std::uint64_t, Open> open_;
  std::map<std::uint64_t, Descriptor> recent_;     // the last kRecent that were entered here
  std::map<std::uint64_t, std::vector<std::pair<net::Rank, Descriptor>>> ahead_;  // others are in, this member not yet
  std::map<std::tuple<collective::Collective, std::string, std::uint32_t>, collective::Verified> programs_;
};

}  // namespace shoal::nn
