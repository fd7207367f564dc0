// Who hears of a table's servers.
#pragma once

#include <string>

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
  virtual std::string summary() const { return ""; }  // a line for people, when all is over
};

}  // namespace shoal::table
