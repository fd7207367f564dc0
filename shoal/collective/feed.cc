#include "shoal/collective/feed.h"

#include <algorithm>
#include <span>
#include <utility>

#include "shoal/core/fnv.h"
#include "shoal/net/call.h"

namespace shoal::collective {
namespace {

constexpr std::uint64_t kMostUnderWay = 256u << 20;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;  // a size from another member is not believed beyond it
constexpr net::Priority kPriority{net::Class::bulk, 0, 0};

// What is given by one of them, of a piece of so many bytes.
struct Part {
  std::uint64_t begin, end;
};
Part part_of(std::uint64_t size, std::uint64_t giver, std::uint64_t givers) {
  const auto until = [&](std::uint64_t n) { return size / givers * n + size % givers * n / givers; };
  return {until(giver), until(giver + 1)};
}

void close(net::Transport& transport, std::uint64_t operation) {
  net::call(transport, [&transport, operation] { transport.close(operation, std::make_shared<const Error>(Code::cancelled, "nobody is fed any more")); });
}

}  // namespace

Feed::Feed(net::Transport& transport, std::vector<net::Rank> to, std::uint64_t operation, Share share)
    : transport_(transport), to_(std::move(to)), operation_(operation), share_(share) {}

Feed::~Feed() { close(transport_, operation_); }

void Feed::give(std::string piece, Nanoseconds patience) {
  struct Given {
    Follower::Announced announced;
    std::string share;
  };
  Fnv1a digest;
  digest.add_words(std::as_bytes(std::span(piece)));
  const Part part = part_of(piece.size(), share_.giver, share_.givers);
  const auto given = std::make_shared<Given>(Given{{piece.size(), digest.value(), share_.giver, share_.givers}, piece.substr(part.begin, part.end - part.begin)});
  const bool is_state = !std::exchange(has_begun_, true);
  const std::uint64_t counted = is_state ? 0 : given->share.size();  // the state takes the memory that it takes
  under_way_->bytes += counted * to_.size();
  under_way_->states += is_state ? to_.size() : 0;
  under_way_->sends += to_.size();
  transport_.post([&transport = transport_, to = to_, tag = net::Tag{operation_, 0}, given, counted, is_state, under_way = under_way_] {
    for (const net::Rank rank : to) {
      transport.send(rank, tag, kPriority, std::as_bytes(std::span(&given->announced, 1)), [given](const net::Failure&) {});
      transport.send(rank, tag, kPriority, std::as_bytes(std::span(given->share)), [given, counted, is_state, under_way](const net::Failure&) {
        under_way->bytes -= counted;
        under_way->states -= is_state;
        --under_way->sends;
      });
    }
  });
  if (under_way_->bytes <= kMostUnderWay) return;
  is_slower_ = true;
  net::wait_for(transport_, [this] { return under_way_->bytes <= kMostUnderWay; }, patience);
}

// Every member is expected to announce something, from most in vain: so all of them are heard when they go.
Follower::Follower(net::Transport& transport, std::uint64_t operation) : transport_(transport), tag_{operation, 0} {
  heard_->next.resize(transport.size());
  net::call(transport, [this] {
    for (net::Rank rank = 0; rank < transport_.size(); ++rank) {
      if (rank != transport_.rank()) expect(rank);
    }
  });
}

Follower::~Follower() { close(transport_, tag_.operation); }

void Follower::expect(net::Rank from) {
  transport_.receive(from, tag_, kPriority, std::as_writable_bytes(std::span(&heard_->next[from], 1)), [heard = heard_, from](const net::Failure& why) {
    if (why) {
      heard->lost = true;
      return;
    }
    heard->from.push_back(from);
    heard->givers = heard->next[from].givers;
    ++heard->announced;
  });
}

std::string Follower::next() {
  wait([this] { return heard_->announced > 0 && heard_->announced >= heard_->givers; });
  struct Arriving {
    std::string bytes;
    std::atomic<std::size_t> missing = 0;  // shares
  };
  const auto piece = std::make_shared<Arriving>();
  const auto all_alike = net::call(transport_, [this, piece] {
    const std::vector<net::Rank> from = std::exchange(heard_->from, {});
    heard_->announced = 0;
    const Announced first = heard_->next[from.front()];
    std::vector<bool> seen(from.size());
    for (const net::Rank rank : from) {
      const Announced& one = heard_->next[rank];
      if (one.size != first.size || one.digest != first.digest || one.givers != from.size() || one.giver >= from.size() || seen[one.giver]) return false;
      seen[one.giver] = true;
    }
    if (first.size > kLargest) return false;
    piece->bytes.resize(first.size);
    piece->missing = from.size();
    for (const net::Rank rank : from) {
      const Part part = part_of(first.size, heard_->next[rank].giver, from.size());
      const auto into = std::as_writable_bytes(std::span(piece->bytes)).subspan(part.begin, part.end - part.begin);
      transport_.receive(rank, tag_, kPriority, into, [piece, heard = heard_](const net::Failure& why) {
        if (why) heard->lost = true;
        if (!why) --piece->missing;
      });
      expect(rank);
    }
    return true;
  });
  if (!all_alike || !*all_alike) throw Error(Code::mismatch, "members do not give the same", "the state for those that came");
  wait([&] { return piece->missing == 0; });
  return std::move(piece->bytes);
}

void Follower::wait(const std::function<bool()>& ready) {
  constexpr Nanoseconds turn = std::chrono::hours(1);
  while (!net::wait_for(transport_, [&] { return ready() || heard_->lost; }, turn)) {
  }
  if (!ready()) throw Error(Code::peer_lost, "a member was lost while others brought the state");
}

}  // namespace shoal::collective
