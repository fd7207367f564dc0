#include "shoal/exchange/roll_call.h"

#include <memory>
#include <utility>

namespace shoal::exchange {
namespace {

constexpr const char* kHint = "every member must take the same number of steps; use model.join() for uneven inputs";

}  // namespace

RollCall::RollCall(net::Transport& transport, std::vector<net::Rank> members, std::uint32_t self)
    : transport_(transport), members_(std::move(members)), self_(self), answers_(members_.size()) {}

void RollCall::start(std::uint64_t operation, const Announcement& own, net::Done done) {
  own_ = answers_[self_] = own;
  last_ = self_;
  failure_ = nullptr;
  done_ = std::move(done);
  // A send and a receive for every other member; one more is held while they are started, so that done runs last.
  waiting_ = static_cast<std::uint32_t>(2 * (members_.size() - 1) + 1);
  for (std::uint32_t m = 0; m < members_.size(); ++m) {
    if (m == self_) continue;
    transport_.receive(members_[m], {operation, 0}, net::kUrgent, std::as_writable_bytes(std::span(&answers_[m], 1)),
                       [this, m](const net::Failure& failure) {
                         last_ = m;
                         arrived(failure);
                       });
    transport_.send(members_[m], {operation, 0}, net::kUrgent, std::as_bytes(std::span(&own_, 1)),
                    [this](const net::Failure& failure) { arrived(failure); });
  }
  arrived(nullptr);
}

void RollCall::end(std::uint64_t operation, const Announcement& own) {
  const auto kept = std::make_shared<const Announcement>(own);
  for (std::uint32_t m = 0; m < members_.size(); ++m) {
    if (m != self_) transport_.send(members_[m], {operation, 0}, net::kUrgent, std::as_bytes(std::span(kept.get(), 1)), [kept](const net::Failure&) {});
  }
}

void RollCall::arrived(const net::Failure& failure) {
  if (failure && !failure_) failure_ = failure;
  if (--waiting_ > 0) return;
  const auto done = std::exchange(done_, nullptr);
  done(failure_ ? failure_ : compare());
}

net::Failure RollCall::compare() const {
  for (std::uint32_t m = 0; m < answers_.size(); ++m) {
    const auto& other = answers_[m];
    const auto where = "rank " + std::to_string(members_[self_]) + " and rank " + std::to_string(members_[m]);
    if (other.ended != 0) {
      return std::make_shared<Error>(Code::mismatch, "ended before step " + std::to_string(own_.iteration) + ", which rank " + std::to_string(members_[self_]) + " begins",
                                     "rank " + std::to_string(members_[m]), kHint);
    }
    if (other.iteration != own_.iteration) {
      return std::make_shared<Error>(Code::mismatch,
                                     "are at different steps (" + std::to_string(own_.iteration) + " and " +
                                         std::to_string(other.iteration) + ")",
                                     where, kHint);
    }
    if (other.plan_hash != own_.plan_hash) {
      return std::make_shared<Error>(Code::mismatch, "have different models or exchange plans at step " + std::to_string(own_.iteration),
                                     where, "run the same code and --plan on every member");
    }
  }
  return nullptr;
}

}  // namespace shoal::exchange
