// Who hears of a table's servers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shoal/net/waiting.h"
#include "shoal/table/message.h"

namespace shoal::table {

class Reader : public net::Arrivals {
 public:
  virtual ~Reader() = default;
  // What a server says about this table. On the loop. Throws Error{mismatch} if it cannot have meant it.
  virtual void take(net::Rank from, Message message) = 0;
  // That member says nothing more. On the loop.
  virtual void leaves(net::Rank) {}
  virtual void loses(net::Rank) {}  // the job goes on without that member
  virtual void all_know() {}        // all members have heard of whatever was lost so far
  virtual Clock reached() const { return 0; }   // by all workers, as some server has told
  // Who holds a shard changes (handover.h). On the loop.
  virtual void joins(std::size_t, net::Rank, std::uint64_t, bool, net::Rank) {}
  virtual void holds(std::size_t, net::Rank, std::uint64_t) {}
  virtual void lacks(std::size_t, net::Rank, std::uint64_t) {}
  virtual void goes(std::size_t, net::Rank, std::uint64_t, std::uint64_t) {}
  virtual void parts(std::size_t, net::Rank, std::uint64_t, std::uint64_t) {}
  // What is sent to them in that call is sent to who answers now, by shard. Any thread.
  virtual void with_firsts(const std::function<void(const std::vector<net::Rank>& firsts)>&) const {}
  virtual void retire_all() {}                  // this member's workers add nothing more. Any thread
  virtual std::string summary() const { return ""; }  // a line for people, when all is over
};

}  // namespace shoal::table
