// Members that do operations together and go on when some of them are lost: each operation is done by all who live, with one set of
// contributors and the same bits everywhere, or by none (agreement.h has the rules and why they suffice).
//
// An operation is a Work. It is begun with an Attempt, among the members that are left; when a member of it is lost in the middle, it is stopped
// and, once all agree, begun again among the others. So a Work never writes its input before it is done: committed() or failed(), once.
// A healthy operation costs one small message to every other member as it begins and one as it is held, of which the second is waited for: half
// a round trip. Nobody waits for ever: after `patience` an operation is given up by all together, unless all have come to hold it.
// Given up, it may be started again as a new one: its input is what it was.
//
// Who is lost is the transport's to say (net::goes_on()): a closed connection at once, silence after JoinOptions::dead and two heartbeats. So
// that a call returns in time when a member is silent, these are to lie below `patience`.
//
// Threads: everything on the transport's loop. Lifetime: the transport outlives us. Members start the same operations in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shoal/collective/run.h"
#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::collective {

struct Attempt {
  std::shared_ptr<Runner> runner;  // of those who are left
  std::uint64_t epoch = 0;         // of its group: greater after each loss, the same on all members
  std::uint64_t operation = 0;     // the first of those that it may take (net::Tag); no other attempt gets them
};

class Work {
 public:
  virtual ~Work() = default;
  // held(nullptr): all of the result is here, and stays until committed(), stop() or failed(). held(why): stopped, or it cannot be done here;
  // nothing is in the transport's hands any more. Once for every begin().
  virtual void begin(const Attempt& attempt, net::Done held) = 0;
  virtual void stop(const net::Failure& why) = 0;  // held is still owed
  virtual void committed(const std::vector<net::Rank>& contributors) = 0;  // ranks in the transport
  virtual void failed(const net::Failure& why) = 0;
};

class Survivors {
 public:
  // `members`: transport ranks, this one among them. channel: ours alone (net::operation_in).
  Survivors(net::Transport& transport, std::vector<net::Rank> members, std::uint16_t channel);
  ~Survivors();  // a work that is open fails with Error{cancelled}

  // After the one before is done. operations: of the transport that an attempt may take, equal on all members. label: for errors.
  void start(std::shared_ptr<Work> work, std::uint32_t operations, Nanoseconds patience, std::string label);

  std::vector<net::Rank> members() const;   // that are left, as agreed; transport ranks, ascending as given
  std::vector<net::Rank> ahead() const;     // of these, who have begun the operation that is to be started next here

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace shoal::collective
