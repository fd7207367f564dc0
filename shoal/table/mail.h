// Messages between the members of a job, in order, two lanes for each ordered pair: to its servers and to its readers. What a
// member says to itself goes the same way without a wire.
//
// Threads: the transport's loop, but for send(). A message that is no message ends the job with a line that names who sent it.
// Lifetime: the transport outlives it; one on each channel of a transport, destroyed on the loop.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "shoal/net/transport.h"
#include "shoal/table/message.h"

namespace shoal::table {

class Mail {
 public:
  using Deliver = std::function<void(net::Rank from, Message message)>;
  using Drained = std::function<void(net::Rank to)>;  // all that was sent there has left
  Mail(net::Transport& transport, std::uint16_t channel, Deliver deliver, Drained drained);
  ~Mail();  // nothing more is delivered, and what has not left stays here
  Mail(const Mail&) = delete;

  // Any thread; messages of one thread arrive in the order of the calls.
  void send(net::Rank to, std::vector<Message> messages);
  std::size_t unsent(net::Rank to) const;  // bytes of send() that have not left; none to itself. Any thread
  net::Failure failure(net::Rank of) const;  // why that member says nothing more, for instance because it left. Any thread

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shoal::table
