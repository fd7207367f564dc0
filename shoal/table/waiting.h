// Waits for what the loop does, with patience; by whom all blocking calls of tables are made. Values; any thread but the loop.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"
#include "shoal/table/message.h"

namespace shoal::table {

class Reader {
 public:
  virtual ~Reader() = default;
  // What a server says about this table. On the loop. Throws Error{mismatch} if it cannot have meant it.
  virtual void take(net::Rank from, Message message) = 0;
  // That member says nothing more. On the loop.
  virtual void leaves(net::Rank) {}
  virtual void loses(net::Rank) {}  // the job goes on without that member
  virtual std::string summary() const { return ""; }  // a line for people, when all is over
  std::uint64_t arrivals() const { return arrivals_.load(std::memory_order_acquire); }  // messages taken: whoever waits looks again

 protected:
  std::atomic<std::uint64_t> arrivals_{0};
};

class Waiting {
 public:
  // failure: why waiting is in vain, beside what ends the transport.
  Waiting(net::Transport& transport, Nanoseconds patience, std::function<net::Failure()> failure)
      : transport_(&transport), patience_(patience), failure_(std::move(failure)) {}
  // Until ready() is true; it is looked at when `reader` took something. Returns how long that took; 0 if it was true at once. what, of: for
  // the error. Throws Error{peer_lost, timeout}.
  template <class Ready>
  Nanoseconds until(const Ready& ready, const Reader& reader, const char* what, const std::string& of) const {
    const std::uint64_t seen = reader.arrivals();
    return ready() ? Nanoseconds::zero() : wait(ready, reader, seen, what, of);
  }

 private:
  Nanoseconds wait(const std::function<bool()>& ready, const Reader& reader, std::uint64_t seen, const char* what, const std::string& of) const;

  net::Transport* transport_;
  Nanoseconds patience_;
  std::function<net::Failure()> failure_;
};

}  // namespace shoal::table
