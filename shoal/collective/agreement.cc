#include "shoal/collective/agreement.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace shoal::collective {
namespace {

constexpr std::size_t kFields = 4;  // numbers of 8 bytes before the bits of who is lost

}  // namespace

// --- a view

std::uint64_t View::epoch() const {
  return rounds + static_cast<std::uint64_t>(std::ranges::count(lost, true));
}

bool View::join(const View& other) {
  bool grew = other.rounds > rounds;
  rounds = std::max(rounds, other.rounds);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    if (!other.lost[i] || lost[i]) continue;
    lost[i] = grew = true;
  }
  return grew;
}

std::uint32_t View::living() const { return static_cast<std::uint32_t>(std::ranges::count(lost, false)); }

// --- the agreement

Agreement::Agreement(std::uint32_t size, std::uint32_t self) : self_(self), votes_(size) {
  view_.lost.assign(size, false);
  concluded_ = view_;
  for (Vote& vote : votes_) vote.view = view_;
}

bool Agreement::lose(std::uint32_t place) {
  if (view_.lost[place]) return false;
  view_.lost[place] = true;
  cast_ = false;
  return true;
}

// In a round of its own: the vote for the view as it is may have been counted already.
bool Agreement::give_up(std::uint64_t operation) {
  ++view_.rounds;
  gives_up_ = operation;
  cast_ = false;
  return true;
}

bool Agreement::heard(std::uint32_t from, const Vote& vote) {
  if (view_.lost[from]) return false;  // what comes late changes nothing
  votes_[from] = vote;
  if (view_.join(vote.view)) cast_ = false;
  return !cast_;
}

Vote Agreement::next_vote() {
  cast_ = true;
  return votes_[self_] = {view_, held_, given_up_, gives_up_};
}

void Agreement::hold(std::uint64_t operation) {
  held_ = operation + 1;
  given_up_ <<= 1;
}

bool Agreement::somebody_gave_up(std::uint64_t operation) const {
  for (std::size_t i = 0; i < votes_.size(); ++i) {
    const Vote& vote = votes_[i];
    if (concluded_.lost[i] || vote.held <= operation || vote.held - 1 - operation >= 64) continue;
    if (vote.given_up >> (vote.held - 1 - operation) & 1) return true;
  }
  return false;
}

Agreement::Fate Agreement::fate(std::uint64_t operation) const {
  if (somebody_gave_up(operation)) return Fate::given_up;
  if (operation < least_held_) return Fate::committed;
  for (std::size_t i = 0; i < votes_.size(); ++i) {
    if (!concluded_.lost[i] && votes_[i].gives_up == operation) return Fate::given_up;
  }
  return Fate::again;
}

bool Agreement::conclude() {
  if (!deciding() || !cast_ || view_.lost[self_]) return false;
  for (std::size_t i = 0; i < votes_.size(); ++i) {
    if (!view_.lost[i] && votes_[i].view != view_) return false;
  }
  concluded_ = view_;
  gives_up_ = Vote::kNone;
  least_held_ = Vote::kNone;
  for (std::size_t i = 0; i < votes_.size(); ++i) {
    if (!concluded_.lost[i]) least_held_ = std::min(least_held_, votes_[i].held);
  }
  // Invariant 3: of all operations only the first that not all hold is open, and the one before for who has not heard that all do.
  switch (fate(least_held_)) {
    case Fate::committed: break;
    case Fate::again:
      if (held_ > least_held_) given_up_ >>= held_ - least_held_;
      held_ = least_held_;
      break;
    case Fate::given_up:
      if (held_ == least_held_) hold(least_held_);
      given_up_ |= 1;
      break;
  }
  if (held_ > 0 && somebody_gave_up(held_ - 1)) given_up_ |= 1;
  return true;
}

// --- as bytes

std::size_t vote_bytes(std::uint32_t size) { return kFields * sizeof(std::uint64_t) + (size + 7) / 8; }

void encode(const Vote& vote, std::span<std::byte> into) {
  const std::array<std::uint64_t, kFields> fields{vote.view.rounds, vote.held, vote.given_up, vote.gives_up};
  std::memcpy(into.data(), fields.data(), sizeof fields);
  const auto bits = into.subspan(sizeof fields);
  std::ranges::fill(bits, std::byte{0});
  for (std::size_t i = 0; i < vote.view.lost.size(); ++i) {
    if (vote.view.lost[i]) bits[i / 8] |= std::byte{1} << i % 8;
  }
}

std::optional<Vote> decode_vote(std::span<const std::byte> bytes, std::uint32_t size) {
  if (bytes.size() != vote_bytes(size)) return std::nullopt;
  std::array<std::uint64_t, kFields> fields;
  std::memcpy(fields.data(), bytes.data(), sizeof fields);
  if (fields[0] > UINT32_MAX) return std::nullopt;
  Vote vote{{std::vector<bool>(size), static_cast<std::uint32_t>(fields[0])}, fields[1], fields[2], fields[3]};
  const auto bits = bytes.subspan(sizeof fields);
  for (std::size_t i = 0; i < bits.size() * 8; ++i) {
    if ((bits[i / 8] >> i % 8 & std::byte{1}) == std::byte{0}) continue;
    if (i >= size) return std::nullopt;
    vote.view.lost[i] = true;
  }
  return vote;
}

}  // namespace shoal::collective
