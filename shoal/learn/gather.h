// Bytes of all members on one, parts of a model on their way into a file; or on all. By all members alike, one call after another. Threads: one.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::learn {

class Gather {
 public:
  // channel: of the transport's operations; one that nothing else has used. Lifetime: the transport outlives it.
  Gather(net::Transport& transport, std::uint16_t channel, Nanoseconds patience = std::chrono::seconds(300))
      : transport_(transport), channel_(channel), patience_(patience) {}
  // Rank 0: everybody's, by rank. Elsewhere nothing, once they have left. Throws Error{peer_lost, timeout, mismatch}.
  std::vector<Bytes> operator()(Bytes own, const std::string& what) { return gathered(std::move(own), what, false); }
  // Everybody's by rank, on all members.
  std::vector<Bytes> on_all(Bytes own, const std::string& what) { return gathered(std::move(own), what, true); }

 private:
  std::vector<Bytes> gathered(Bytes own, const std::string& what, bool on_all);

  net::Transport& transport_;
  const std::uint16_t channel_;
  const Nanoseconds patience_;
  std::uint64_t calls_ = 0;
};

// What each member says in plain numbers, by rank, on all of them. Throws Error{mismatch} where one says it in another size.
template <class Said>
std::vector<Said> said_by_all(Gather& gather, const Said& own, const std::string& what) {
  Bytes bytes(sizeof(own));
  std::memcpy(bytes.data(), &own, sizeof(own));
  std::vector<Said> said;
  for (const Bytes& theirs : gather.on_all(std::move(bytes), what)) {
    if (theirs.size() != sizeof(Said)) throw Error(Code::mismatch, "a member says something else than " + what, "", "run the same program on all members");
    std::memcpy(&said.emplace_back(), theirs.data(), sizeof(Said));
  }
  return said;
}

}  // namespace shoal::learn
