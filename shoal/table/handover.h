// A shard on its way to a member that is to hold it, too, while workers go on using it.
//
//   giver -> receiver   invite     to make an empty shard of this table
//   receiver -> giver   more       it is ready
//   giver -> all        joins      what you write goes to the receiver, too
//   member -> both      follow     from here on in this member's stream it does (or last: nothing comes any more)
//   giver -> receiver   given_...  when all have said so: the shard as it is at that moment, with how much of each stream behind its mark is in it
//   receiver -> giver   more       the next piece: the receiver sets the pace, and pieces go in the background
//   receiver -> all     holds      it is what the giver was, and what came behind the marks is in it; or
//                       lacks      it will not be
//
// Nobody waits for any of it. What the receiver has made of it is what it would have made of all streams from the beginning: rows as they were before
// the oldest clock that may still be taken back, and everything since as the batches that came.
//
// A handover ends with the receiver's word, or with its loss. When a member is lost meanwhile the handover is given up: what the servers agree on then
// (last_clocks.h) is said by those that hold the shard, and what is handed over is never in between. Threads: the transport's loop.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shoal/net/transport.h"
#include "shoal/table/image.h"
#include "shoal/table/message.h"

namespace shoal::table {

// At the giver.
template <class T>
class Giving {
 public:
  // silent: by rank, who writes nothing any more.
  Giving(net::Rank to, std::uint64_t number, const std::vector<bool>& silent) : to_(to), number_(number), behind_(silent.size()) {
    for (std::size_t rank = 0; rank < silent.size(); ++rank) {
      if (silent[rank]) behind_[rank] = 0;
    }
  }
  net::Rank to() const { return to_; }
  std::uint64_t number() const { return number_; }

  void marks(net::Rank of) { behind_[of] = behind_[of].value_or(0); }
  void counts(net::Rank of) {                        // a message that is written, and is in the shard
    if (behind_[of]) ++*behind_[of];
  }
  bool is_due() const {                              // all have marked, and the shard has not been cut
    return !image_ && std::ranges::all_of(behind_, [](const auto& behind) { return behind.has_value(); });
  }
  std::uint64_t behind(net::Rank of) const { return *behind_[of]; }
  // The shard as it is now. pieces: what goes ahead of the rows.
  void cut(std::deque<Message> pieces, std::unique_ptr<RowsImage<T>> image) {
    pieces_ = std::move(pieces);
    image_ = std::move(image);
  }
  void wants() { ++wanted_; }
  // Those that are wanted and there. row_bytes: of a row with its state.
  std::vector<Message> take_pieces(std::uint64_t table, std::size_t row_bytes);

 private:
  const net::Rank to_;
  const std::uint64_t number_;
  std::vector<std::optional<std::uint64_t>> behind_;  // by rank: messages behind the mark
  std::deque<Message> pieces_;
  std::unique_ptr<RowsImage<T>> image_;
  std::size_t wanted_ = 0;
  bool over_ = false;                                 // the last piece has left
};

template <class T>
std::vector<Message> Giving<T>::take_pieces(std::uint64_t table, std::size_t row_bytes) {
  std::vector<Message> taken;
  for (; image_ && wanted_ > 0 && !over_; --wanted_) {
    if (!pieces_.empty()) {
      taken.push_back(std::move(pieces_.front()));
      pieces_.pop_front();
      continue;
    }
    Message rows = Message::of_kind(Kind::given_rows, table);
    rows.body = image_->next();
    rows.header.length = static_cast<std::uint32_t>(rows.body.size());
    rows.header.count = static_cast<std::uint32_t>(rows.body.size() / (sizeof(Key) + row_bytes));
    over_ = rows.body.empty();
    if (over_) rows.header.ends = Ends::clock;
    taken.push_back(std::move(rows));
  }
  return taken;
}

// At the receiver.
class Receiving {
 public:
  static constexpr std::size_t kUnderWay = 4;        // pieces

  Receiving(net::Rank giver, std::uint64_t number, net::Rank members) : giver_(giver), number_(number), marked_(members) {}
  net::Rank giver() const { return giver_; }
  std::uint64_t number() const { return number_; }

  void marks(net::Rank of) { marked_[of] = true; }
  void keep(net::Rank of, Message message) {         // of what is written: what came behind the mark
    if (marked_[of]) behind_.emplace_back(of, std::move(message));
  }
  void state(Message state) { state_ = std::move(state); }
  const Message& state() const { return state_; }
  void batch(Message part) { batches_.push_back(std::move(part)); }
  std::deque<Message>& batches() { return batches_; }
  std::deque<std::pair<net::Rank, Message>>& behind() { return behind_; }

 private:
  const net::Rank giver_;
  const std::uint64_t number_;
  std::vector<bool> marked_;                         // by rank
  std::deque<std::pair<net::Rank, Message>> behind_; // in the order in which they came
  Message state_;
  std::deque<Message> batches_;
};

}  // namespace shoal::table
