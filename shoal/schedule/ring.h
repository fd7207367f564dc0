// Hands blocks of a model round the workers of a rotation, from worker to worker: nobody waits for all. A block goes to a worker of the same member
// as it is, to another member's as bytes. Or each member has copies of all blocks (Holding::copies): these go round its own workers, and what they do
// to a block is told to the other members as bytes that are theirs to read; each is known by who told it after which step.
//
// Block has `Bytes packed() const` and `static std::unique_ptr<Block> unpacked(std::span<const std::byte>)`, which throws Error{mismatch} for what is
// none. Workers are threads of members, as many as each has. Threads: any, one a worker. Lifetime: the transport outlives it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/net/call.h"
#include "shoal/net/mail.h"
#include "shoal/net/waiting.h"
#include "shoal/schedule/rotation.h"

namespace shoal::schedule {

struct BlockHeader {
  std::uint64_t step = 0;     // at which the worker needs it
  std::uint64_t length = 0;
  std::uint32_t worker = 0;   // who
  std::uint32_t reserved = 0;
};
struct BlockMessage {
  BlockHeader header;
  Bytes body;
};
struct BlockMail {
  static constexpr std::uint32_t lanes = 1;
  static constexpr std::uint64_t kLongest = std::uint64_t{1} << 36;
  static std::uint32_t lane_of(const BlockHeader&) { return 0; }
  static std::string fault_of(const BlockHeader& header, std::uint32_t) { return header.length > kLongest ? "a block of a model that is none" : ""; }
};

enum class Holding : std::uint8_t { turns, copies };

template <class Block>
class Ring {
 public:
  // channel: one that nothing else of the transport has used. member_of: whose each worker is; those of one follow each other.
  Ring(net::Transport& transport, std::uint16_t channel, const Rotation& rotation, std::vector<net::Rank> member_of, Nanoseconds patience,
       Holding holding = Holding::turns)
      : rotation_(rotation), member_of_(std::move(member_of)), rank_(transport.rank()), holding_(holding), transport_(transport), patience_(patience),
        slots_(std::make_shared<Slots>()),
        waiting_(transport, patience, [this] { return sender_ == rank_ ? nullptr : mail_->failure(sender_); }) {
    auto mail = net::call(transport_, [&transport, channel, slots = slots_] {
      const auto deliver = [slots](net::Rank, BlockMessage message) {
        slots->put({message.header.worker, message.header.step}, std::move(message.body));
      };
      return std::make_shared<Mail>(transport, channel, "blocks of a model", deliver, [](net::Rank) {});
    });
    if (!mail) throw Error(Code::cancelled, "the transport has ended", "blocks of a model");
    mail_ = std::move(*mail);
  }
  // By all members after their last step, and when all have met once more: what others were handed has left by then.
  ~Ring() {
    net::call(transport_, [mail = std::move(mail_)]() mutable { mail.reset(); });
  }
  Ring(const Ring&) = delete;

  // Of this member's worker, for that step: as if it had been handed on.
  void put(std::uint32_t worker, std::uint64_t step, std::unique_ptr<Block> block) { slots_->put({worker, step}, std::move(block)); }

  // To the worker who needs it next; `step` is the one that is done.
  void pass(std::uint32_t worker, std::uint64_t step, std::unique_ptr<Block> block) {
    const Place place = holding_ == Holding::copies ? rotation_.next_within(team_, {worker, step})
                                                    : Place{rotation_.next(worker), rotation_.next_step(step)};
    const net::Rank to = member_of_[place.worker];
    if (to == rank_) {
      slots_->put(place, std::move(block));
      transport_.post([slots = slots_] { slots->arrived(); });  // who waits looks again when the loop has run
      return;
    }
    send(to, place, block->packed());
  }

  // Of copies: to all other members what this one's workers did up to that turn.
  void tell(const Place& place, const Bytes& what) {
    for (net::Rank to = 0; to < transport_.size(); ++to) {
      if (to != rank_) send(to, place, what);
    }
  }
  // What another member's worker told after that turn. Waits for it; it stays until it is dropped.
  Bytes told(const Place& place, Nanoseconds& waited) {
    const net::Rank from = member_of_[place.worker];
    const net::Waiting waiting(transport_, patience_, [this, from] { return mail_->failure(from); });
    waited += waiting.until([&] { return slots_->has(place); }, *slots_, "changes of the model from rank ", std::to_string(from));
    return slots_->bytes_at(place);
  }
  void drop(const Place& place) { slots_->take(place); }

  std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }  // bytes to other members, since it is there
  Team team(net::Rank member) const {
    const auto workers = std::ranges::equal_range(member_of_, member);
    return {static_cast<std::uint32_t>(workers.begin() - member_of_.begin()), static_cast<std::uint32_t>(workers.size())};
  }

  // Waits for it; adds to `waited` how long. Throws Error{peer_lost, timeout, mismatch}.
  std::unique_ptr<Block> take(std::uint32_t worker, std::uint64_t step, Nanoseconds& waited) {
    const Place place{worker, step};
    waited += waiting_.until([&] { return slots_->has(place); }, *slots_, "a block of the model from rank ", std::to_string(sender_));
    Held held = slots_->take(place);
    if (auto* block = std::get_if<std::unique_ptr<Block>>(&held)) return std::move(*block);
    return Block::unpacked(std::get<Bytes>(held));
  }

 private:
  using Mail = net::Mail<BlockMessage, BlockMail>;
  using Held = std::variant<std::unique_ptr<Block>, Bytes>;
  struct Slots : net::Arrivals {
    void put(Place place, Held held) {
      {
        const std::lock_guard lock(mutex);
        waiting.insert_or_assign(place, std::move(held));
      }
      arrived();
    }
    void arrived() { arrivals_.fetch_add(1, std::memory_order_release); }
    bool has(Place place) const {
      const std::lock_guard lock(mutex);
      return waiting.contains(place);
    }
    Held take(Place place) {
      const std::lock_guard lock(mutex);
      return std::move(waiting.extract(place).mapped());
    }
    Bytes bytes_at(Place place) const {
      const std::lock_guard lock(mutex);
      return std::get<Bytes>(waiting.at(place));
    }
    mutable std::mutex mutex;
    std::map<Place, Held> waiting;  // guarded by mutex
  };

  void send(net::Rank to, const Place& place, Bytes body) {
    BlockMessage message{{.step = place.step, .length = body.size(), .worker = place.worker}, std::move(body)};
    sent_.fetch_add(sizeof(BlockHeader) + message.body.size(), std::memory_order_relaxed);
    std::vector<BlockMessage> messages;
    messages.push_back(std::move(message));
    mail_->send(to, std::move(messages));
  }
  // Who hands this member's last worker its blocks.
  net::Rank sender() const {
    std::uint32_t worker = rotation_.workers - 1;
    while (member_of_[worker] != rank_) --worker;
    return member_of_[(worker + 1) % rotation_.workers];
  }

  const Rotation rotation_;
  const std::vector<net::Rank> member_of_;
  const net::Rank rank_;
  const Team team_ = team(rank_);
  const Holding holding_;
  net::Transport& transport_;
  const Nanoseconds patience_;
  std::atomic<std::uint64_t> sent_{0};
  const std::shared_ptr<Slots> slots_;
  const net::Rank sender_ = sender();
  std::shared_ptr<Mail> mail_;  // made and destroyed on the loop
  net::Waiting waiting_;
};

}  // namespace shoal::schedule
