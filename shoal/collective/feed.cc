#include "shoal/collective/feed.h"

#include <algorithm>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "shoal/core/fnv.h"
#include "shoal/net/call.h"

namespace shoal::collective {
namespace {

constexpr std::uint64_t kMostUnderWay = 256u << 20;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;  // a size from another member is not believed beyond it
constexpr net::Priority kPriority{net::Class::bulk, 0, 0};

constexpr std::size_t kAhead = 2;  // pieces

// Each giver says what comes before its share of it, on a lane of its own: few bytes that leave unasked, so that who follows knows of pieces before they are there.
struct Announced {
  std::uint64_t size = 0, digest = 0;  // of the whole piece
  std::uint32_t giver = 0, givers = 0;
};
net::Tag announcements(std::uint64_t operation) { return {operation, 0}; }
net::Tag shares(std::uint64_t operation) { return {operation, 1}; }

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

bool Feed::give(const Parts& parts, Nanoseconds patience, bool by_first) {
  if (by_first && !is_first()) return true;
  struct Given {
    Announced announced;
    Bytes share;
  };
  Fnv1a digest;
  std::uint64_t size = 0;
  for (const auto& part : parts) {
    digest.add_words(part);
    size += part.size();
  }
  const net::Rank givers = by_first ? 1 : share_.givers;
  const Part own = part_of(size, share_.giver, givers);
  const auto given = std::make_shared<Given>(Given{{size, digest.value(), share_.giver, givers}, Bytes(own.end - own.begin)});
  std::byte* into = given->share.data();
  std::uint64_t at = 0;
  for (const auto& part : parts) {
    const std::uint64_t begin = std::clamp(own.begin, at, at + part.size()), end = std::clamp(own.end, at, at + part.size());
    if (begin < end) into = std::ranges::copy(part.subspan(begin - at, end - begin), into).out;
    at += part.size();
  }
  const bool is_state = !std::exchange(has_begun_, true);
  const std::uint64_t counted = is_state ? 0 : given->share.size();  // the state takes the memory that it takes
  under_way_->bytes += counted * to_.size();
  under_way_->states += is_state ? to_.size() : 0;
  under_way_->sends += to_.size();
  transport_.post([&transport = transport_, to = to_, operation = operation_, given, counted, is_state, under_way = under_way_] {
    for (const net::Rank rank : to) {
      transport.send(rank, announcements(operation), kPriority, std::as_bytes(std::span(&given->announced, 1)), [given](const net::Failure&) {});
      transport.send(rank, shares(operation), kPriority, given->share, [given, counted, is_state, under_way](const net::Failure&) {
        under_way->bytes -= counted;
        under_way->states -= is_state;
        --under_way->sends;
      });
    }
  });
  if (under_way_->bytes <= kMostUnderWay) return true;
  is_slower_ = true;
  return net::wait_for(transport_, [this] { return under_way_->bytes <= kMostUnderWay; }, patience);
}

// On the loop, but for what is atomic.
struct Follower::Arrivals : std::enable_shared_from_this<Arrivals> {
  struct Piece {
    Bytes bytes;
    std::size_t missing = 0;  // shares
  };
  Arrivals(net::Transport& over, std::uint64_t of) : transport(over), operation(of), coming(over.size()), announced(over.size()) {}

  // Every member is expected to announce something, from most in vain: so all of them are heard when they go.
  void expect(net::Rank from) {
    transport.receive(from, announcements(operation), kPriority, std::as_writable_bytes(std::span(&coming[from], 1)), [self = shared_from_this(), from](const net::Failure& why) {
      if (why) {
        self->is_lost = true;
        return;
      }
      self->announced[from].push_back(self->coming[from]);
      self->begin_next();
      self->expect(from);
    });
  }

  // Pieces of which all givers have announced their share; which piece is next the first giver says.
  void begin_next() {
    if (discards) return throw_away();
    while (pieces.size() < kAhead) {
      std::vector<net::Rank> from;
      std::uint32_t givers = 0;
      for (net::Rank rank = 0; rank < announced.size(); ++rank) {
        if (announced[rank].empty()) continue;
        const Announced& one = announced[rank].front();
        if (one.giver == 0) givers = one.givers;
        if (one.giver == 0 || givers > 1) from.push_back(rank);  // numbered as their ranks are
      }
      if (from.empty() || from.size() < givers) return;
      begin(from);
    }
  }

  void begin(const std::vector<net::Rank>& from) {
    std::vector<Announced> said;
    for (const net::Rank rank : from) {
      said.push_back(announced[rank].front());
      announced[rank].pop_front();
      const Announced& one = said.back();
      const bool is_alike = one.size == said[0].size && one.digest == said[0].digest && one.giver == said.size() - 1 && one.givers == from.size();
      if (!is_alike || !is_possible(one)) differ = discards = true;
    }
    if (discards) {
      for (std::size_t i = 0; i < from.size(); ++i) throw_away(from[i], said[i]);
      return throw_away();
    }
    const auto piece = pieces.emplace_back(std::make_shared<Piece>());
    piece->missing = from.size();
    piece->bytes = Bytes(said[0].size);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const Part part = part_of(said[i].size, said[i].giver, said[i].givers);
      const auto into = std::span(piece->bytes).subspan(part.begin, part.end - part.begin);
      transport.receive(from[i], shares(operation), kPriority, into, [self = shared_from_this(), piece](const net::Failure& why) {
        if (why) self->is_lost = true;
        if (!why) --piece->missing;
        while (self->whole < self->pieces.size() && self->pieces[self->whole]->missing == 0) ++self->whole;
      });
    }
  }

  static bool is_possible(const Announced& one) { return one.size <= kLargest && one.giver < one.givers; }  // nobody that we know says anything else

  // Each share by itself: a giver may be lost.
  void throw_away() {
    for (net::Rank rank = 0; rank < announced.size(); ++rank) {
      for (; !announced[rank].empty(); announced[rank].pop_front()) throw_away(rank, announced[rank].front());
    }
  }
  void throw_away(net::Rank from, const Announced& one) {
    if (!is_possible(one)) return;
    const Part part = part_of(one.size, one.giver, one.givers);
    const Bytes nobodys(part.end - part.begin);
    transport.receive(from, shares(operation), kPriority, std::span(nobodys), [nobodys](const net::Failure&) {});
  }

  net::Transport& transport;
  const std::uint64_t operation;
  std::vector<Announced> coming;                  // by rank
  std::vector<std::deque<Announced>> announced;   // by rank, of pieces that have not begun
  std::deque<std::shared_ptr<Piece>> pieces;      // that have begun, in order; so they end
  std::atomic<std::size_t> whole = 0;             // the first ones of these
  std::atomic<bool> is_lost = false, differ = false;
  bool discards = false;
};

Follower::Follower(net::Transport& transport, std::uint64_t operation) : transport_(transport), arrivals_(std::make_shared<Arrivals>(transport, operation)) {
  net::call(transport, [arrivals = arrivals_] {
    for (net::Rank rank = 0; rank < arrivals->transport.size(); ++rank) {
      if (rank != arrivals->transport.rank()) arrivals->expect(rank);
    }
  });
}

Follower::~Follower() {
  const bool is_broken = net::call(transport_, [arrivals = arrivals_] { return arrivals->is_lost || arrivals->differ || arrivals->discards; }).value_or(false);
  is_broken ? give_up() : close(transport_, arrivals_->operation);
}

void Follower::give_up() {
  net::call(transport_, [arrivals = arrivals_] {
    arrivals->discards = true;
    arrivals->begin_next();
  });
}

Bytes Follower::next() {
  constexpr Nanoseconds turn = std::chrono::hours(1);
  while (!net::wait_for(transport_, [&] { return arrivals_->whole > 0 || arrivals_->is_lost || arrivals_->differ; }, turn)) {
  }
  if (arrivals_->whole == 0 && arrivals_->is_lost) throw Error(Code::peer_lost, "a member was lost while others brought the state");
  if (arrivals_->whole == 0) throw Error(Code::mismatch, "members do not give the same", "the state for those that came");
  const auto piece = net::call(transport_, [arrivals = arrivals_] {
    const auto first = arrivals->pieces.front();
    arrivals->pieces.pop_front();
    --arrivals->whole;
    arrivals->begin_next();
    return first;
  });
  if (!piece) throw Error(Code::internal, "the network's loop does not answer", "the state for those that came");
  return std::move((*piece)->bytes);
}

}  // namespace shoal::collective
