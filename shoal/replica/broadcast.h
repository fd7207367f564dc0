// What members tell all others, in order: each member's messages arrive everywhere once, in the order in which they were sent, over an overlay whose
// members relay (factor/overlay.h). The first of each member describes what it has; a member that has something else ends the job. That it leaves
// a member says to each other one directly, since relays may have left before; it is delivered behind what came of it before.
//
// Threads: as of net::Mail. Lifetime: the transport outlives it; destroyed on the loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shoal/factor/overlay.h"
#include "shoal/net/mail.h"
#include "shoal/table/consistency.h"

namespace shoal::replica {

enum class Kind : std::uint8_t { description = 1, update, set, barrier, leaving };
inline constexpr Kind kLast = Kind::leaving;

inline constexpr std::size_t kLongestBody = std::size_t{1} << 30;

struct Header {
  std::uint32_t length = 0;    // of the body
  Kind kind = Kind::update;
  std::uint8_t ends_clock = 0; // of an update: the last of its clock
  std::uint16_t zero = 0;
  std::uint32_t origin = 0, zeros = 0;
  std::uint64_t sequence = 0;  // among its origin's; of leaving: how many there were
  table::Clock clock = 0;      // of an update: its timestamp; of a barrier: its origin's
};
static_assert(sizeof(Header) == 32);

struct Message {
  Header header;
  Bytes body;
};

// Why a header cannot be one; empty: it can.
std::string fault_of(const Header& header);

struct ReplicaMail {
  static constexpr std::uint32_t lanes = 1;
  static std::uint32_t lane_of(const Header&) { return 0; }
  static std::string fault_of(const Header& header, std::uint32_t) { return replica::fault_of(header); }
};

class Broadcast {
 public:
  // deliver: on the loop, all but descriptions. May throw Error, which ends the job.
  using Deliver = std::function<void(Message message)>;
  Broadcast(net::Transport& transport, std::uint16_t channel, const factor::Overlay& overlay, std::string description, Deliver deliver);

  // To all others. Any thread, one at a time. Origin and sequence are filled in.
  void send(Message message);
  void leave();                                   // the last
  bool unsent() const;                            // any thread
  // Why a member that did not say that it leaves says nothing more. Any thread.
  net::Failure failure(net::Rank of) const { return leaves_[of] ? nullptr : mail_.failure(of); }

 private:
  void take(net::Rank from, Message message);
  void deliver_last(net::Rank of);
  void pass_on(const Message& message);
  Message described() const;

  net::Transport& transport_;
  const factor::Overlay overlay_;
  const std::string description_;
  const Deliver deliver_;
  std::uint64_t sent_ = 0;
  std::vector<std::uint64_t> received_;           // by origin; on the loop
  std::vector<std::optional<Message>> last_;      // by rank: that it leaves, until it is delivered; on the loop
  std::vector<std::atomic<bool>> leaves_;         // by rank
  net::Mail<Message, ReplicaMail> mail_;
};

}  // namespace shoal::replica
