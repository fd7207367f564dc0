#include "shoal/nn/feed.h"

#include <span>
#include <utility>

#include "shoal/net/call.h"

namespace shoal::nn {
namespace {

constexpr std::uint64_t kMostUnderWay = 256u << 20;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;  // a size from another member is not believed beyond it
constexpr net::Priority kPriority{net::Class::bulk, 0, 0};

struct Piece {
  std::uint64_t size;
  std::string bytes;
};

void close(net::Transport& transport, std::uint64_t operation) {
  net::call(transport, [&transport, operation] { transport.close(operation, std::make_shared<const Error>(Code::cancelled, "nobody is fed any more")); });
}

}  // namespace

Feed::Feed(net::Transport& transport, std::vector<net::Rank> to, std::uint64_t operation)
    : transport_(transport), to_(std::move(to)), operation_(operation) {}

Feed::~Feed() { close(transport_, operation_); }

void Feed::give(std::string piece, Nanoseconds patience) {
  const auto kept = std::make_shared<Piece>(Piece{piece.size(), std::move(piece)});
  const std::uint64_t counted = std::exchange(has_begun_, true) ? kept->size : 0;  // the state takes the memory that it takes
  under_way_->bytes += counted * to_.size();
  under_way_->sends += to_.size();
  transport_.post([&transport = transport_, to = to_, tag = net::Tag{operation_, 0}, kept, counted, under_way = under_way_] {
    for (const net::Rank rank : to) {
      transport.send(rank, tag, kPriority, std::as_bytes(std::span(&kept->size, 1)), [kept](const net::Failure&) {});
      transport.send(rank, tag, kPriority, std::as_bytes(std::span(kept->bytes)), [kept, counted, under_way](const net::Failure&) {
        under_way->bytes -= counted;
        --under_way->sends;
      });
    }
  });
  if (under_way_->bytes <= kMostUnderWay) return;
  is_slower_ = true;
  net::wait_for(transport_, [this] { return under_way_->bytes <= kMostUnderWay; }, patience);
}

// Of each member a size is expected, from most in vain: so all of them are heard when they go.
Follower::Follower(net::Transport& transport, std::uint64_t operation) : transport_(transport), tag_{operation, 0} {
  heard_->sizes.resize(transport.size());
  net::call(transport, [this] {
    for (net::Rank rank = 0; rank < transport_.size(); ++rank) {
      if (rank != transport_.rank()) expect_size(rank);
    }
  });
}

Follower::~Follower() { close(transport_, tag_.operation); }

void Follower::expect_size(net::Rank from) {
  transport_.receive(from, tag_, kPriority, std::as_writable_bytes(std::span(&heard_->sizes[from], 1)), [heard = heard_, from](const net::Failure& why) {
    if (why) heard->lost = true;
    if (!why) heard->from = static_cast<int>(from);
  });
}

std::string Follower::next() {
  wait([this] { return heard_->from >= 0; });
  const auto from = static_cast<net::Rank>(heard_->from.exchange(-1));
  const std::uint64_t size = heard_->sizes[from];
  if (size > kLargest) throw Error(Code::internal, "a piece of " + std::to_string(size) + " bytes was announced", "the state for those that came");
  struct Arriving {
    std::string bytes;
    std::atomic<bool> is_here = false;
  };
  const auto piece = std::make_shared<Arriving>();
  piece->bytes.resize(size);
  net::call(transport_, [this, from, piece] {
    transport_.receive(from, tag_, kPriority, std::as_writable_bytes(std::span(piece->bytes)), [piece, heard = heard_](const net::Failure& why) {
      (why ? heard->lost : piece->is_here) = true;
    });
    expect_size(from);
  });
  wait([&] { return piece->is_here.load(); });
  return std::move(piece->bytes);
}

void Follower::wait(const std::function<bool()>& ready) {
  constexpr Nanoseconds turn = std::chrono::hours(1);
  while (!net::wait_for(transport_, [&] { return ready() || heard_->lost; }, turn)) {
  }
  if (!ready()) throw Error(Code::peer_lost, "a member was lost while others brought the state");
}

}  // namespace shoal::nn
