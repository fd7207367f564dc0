#include "shoal/replica/broadcast.h"

#include <algorithm>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::replica {
std::string fault_of(const Header& header) {
  if (header.kind < Kind::description || header.kind > kLast) return "a message of unknown kind " + std::to_string(static_cast<int>(header.kind));
  if (header.length > kLongestBody) return "a message of " + std::to_string(header.length) + " bytes";
  if (header.clock < 0 || header.clock > table::kLastClock) return "a clock of " + std::to_string(header.clock);
  return "";
}

Broadcast::Broadcast(net::Transport& transport, std::uint16_t channel, const factor::Overlay& overlay, std::string description,
                     Deliver deliver)
    : transport_(transport),
      overlay_(overlay),
      description_(std::move(description)),
      deliver_(std::move(deliver)),
      received_(transport.size()),
      last_(transport.size()),
      leaves_(transport.size()),
      mail_(
          transport, channel, "replicas", [this](net::Rank from, Message message) { take(from, std::move(message)); },
          [](net::Rank) {}) {
  send(described());
}

Message Broadcast::described() const {
  Message message{{.kind = Kind::description}, Bytes(description_.size())};
  std::ranges::copy(std::as_bytes(std::span(description_)), message.body.data());
  return message;
}

void Broadcast::send(Message message) {
  message.header.length = static_cast<std::uint32_t>(message.body.size());
  message.header.origin = transport_.rank();
  message.header.sequence = sent_++;
  pass_on(message);
}

// Bodies are shared, not copied.
void Broadcast::pass_on(const Message& message) {
  for (const net::Rank to : overlay_.next(message.header.origin, transport_.rank())) mail_.send(to, {message});
}

void Broadcast::leave() {
  for (net::Rank to = 0; to < transport_.size(); ++to) {
    if (to != transport_.rank()) mail_.send(to, {{{.kind = Kind::leaving, .origin = transport_.rank(), .sequence = sent_}, {}}});
  }
}

bool Broadcast::unsent() const {
  for (net::Rank to = 0; to < transport_.size(); ++to) {
    if (mail_.unsent(to) > 0) return true;
  }
  return false;
}

// Behind all that came of it.
void Broadcast::deliver_last(net::Rank of) {
  if (last_[of] && last_[of]->header.sequence == received_[of]) deliver_(*std::exchange(last_[of], std::nullopt));
}

void Broadcast::take(net::Rank from, Message message) try {
  const Header& header = message.header;
  if (header.kind == Kind::leaving && header.origin == from) {
    leaves_[from] = true;
    last_[from] = std::move(message);
    return deliver_last(from);
  }
  if (header.origin >= transport_.size() || header.origin == transport_.rank() || overlay_.before(header.origin, transport_.rank()) != from ||
      header.sequence != received_[header.origin] || (header.sequence == 0) != (header.kind == Kind::description)) {
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " passed on what does not follow on what it did before", "replicas",
                "run the same program on all members");
  }
  ++received_[header.origin];
  pass_on(message);
  const net::Rank origin = header.origin;
  if (header.kind != Kind::description) {
    deliver_(std::move(message));
    return deliver_last(origin);
  }
  const std::string theirs(reinterpret_cast<const char*>(message.body.data()), message.body.size());
  if (theirs != description_) {
    throw Error(Code::mismatch, "rank " + std::to_string(header.origin) + " has \"" + theirs + "\", this member \"" + description_ + "\"", "replicas",
                "describe the matrix alike on all members");
  }
  deliver_last(origin);
} catch (const Error& error) {
  transport_.fail(error);
}

}  // namespace shoal::replica
