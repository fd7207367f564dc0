// Members of one host agree on memory for their streams. Each tells the other its mailbox, passes its own segment to the
// other's, and says whether it could map what was passed; streams go that way if both could. All of it before the first stream.
#include <cstring>

#include "shoal/net/peer.h"

namespace shoal::net {

void Peer::share() {
  sharing_.begun = true;
  sharing_.mailbox.emplace();
  tell(wire::Kind::mailbox, sharing_.mailbox->name());
}

bool Peer::on_mailbox(std::span<const std::byte> payload) {
  if (sharing_.own) return false;
  sharing_.own.emplace();
  const std::string mailbox(reinterpret_cast<const char*>(payload.data()), payload.size());
  const std::string why_not = mailbox.empty() ? "it has no mailbox" : sharing_.own->pass(mailbox, owner_.loop().bell(), owner_.arena() ? owner_.arena()->descriptor() : -1);
  if (!why_not.empty()) owner_.cannot_share(rank_, why_not);
  const SegmentNumber& number = sharing_.own->number();
  tell(wire::Kind::segment, why_not.empty() ? std::string(reinterpret_cast<const char*>(number.data()), number.size()) : "");
  return true;
}

bool Peer::on_segment(std::span<const std::byte> payload) {
  if (!sharing_.mailbox || sharing_.attached) return false;
  SegmentNumber number{};
  sharing_.attached = false;
  bool arena = false;
  if (payload.size() == number.size()) {
    std::memcpy(number.data(), payload.data(), number.size());
    OtherSegment other;
    const std::string why_not = sharing_.mailbox->take(number, other);
    if (!why_not.empty()) owner_.cannot_share(rank_, why_not);
    sharing_.attached = why_not.empty();
    arena = bool{other.arena};
    if (*sharing_.attached) sharing_.other = std::move(other);
  }
  sharing_.mailbox.reset();
  tell(wire::Kind::attached, std::string(1, static_cast<char>(!*sharing_.attached ? 0 : arena ? 2 : 1)));
  sharing_changed();
  return true;
}

bool Peer::on_attached(std::span<const std::byte> payload) {
  if (!sharing_.own || sharing_.answer || payload.size() != 1 || payload[0] > std::byte{2}) return false;
  sharing_.answer = payload[0] != std::byte{0};
  sharing_.lends = payload[0] == std::byte{2};
  sharing_changed();
  return true;
}

// The other side may send as soon as it has mapped our memory and heard that we have mapped its own; so here the connection
// begins to read when both segments are there, and ends again if the other says that it could not map ours.
void Peer::sharing_changed() {
  const bool refused = sharing_.answer && !*sharing_.answer;
  if (!memory_ && sharing_.own && *sharing_.own && sharing_.other && !refused) {
    memory_ = std::make_unique<MemoryConnection>(std::move(*sharing_.own), std::move(*sharing_.other), *this,
                                                 [&loop = owner_.loop()](std::function<void()> fn) { loop.post(std::move(fn)); });
    owner_.memory_connections().add(*memory_);
    sharing_.other.reset();
  }
  if (memory_ && refused) {
    owner_.memory_connections().remove(*memory_);
    memory_.reset();
  }
  shares_ = memory_ && sharing_.answer;
  if (shares_ && sharing_.lends && owner_.arena()) memory_->lend_from(*owner_.arena());
  owner_.sharing_changed();
}

}  // namespace shoal::net
