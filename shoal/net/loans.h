// What a member of this host has given (Transport::give) and this one reads where it lies, and what this one has given it: both number the frames of
// such a kind in the order in which they go through the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/net/arena.h"
#include "shoal/net/body.h"
#include "shoal/net/frame.h"

namespace shoal::net {

using Post = std::function<void(std::function<void()>)>;  // to the loop, from any thread

// The other's memory, as this side reads it. It is mapped while something of it is held. Threads: any, but for its maker's, who says which.
class Borrowed : public std::enable_shared_from_this<Borrowed> {
 public:
  // say: on the loop, that there is something to return.
  Borrowed(ArenaView arena, Post post, std::function<void()> say) : arena_(std::move(arena)), post_(std::move(post)), say_(std::move(say)) {}
  const ArenaView& arena() const { return arena_; }

  // Of the next frame. One thread.
  Loan loan() {
    return {this, [self = shared_from_this(), number = next_++](const void*) { self->give_back(number); }};
  }
  // What is not held any more, as much as a frame takes; empty: nothing.
  std::vector<wire::Returned> take_returned();
  void end() { say_ = nullptr; }                // nobody asks any more; on the loop

 private:
  void give_back(std::uint64_t number);

  const ArenaView arena_;
  const Post post_;
  std::function<void()> say_;
  std::uint64_t next_ = 0;
  std::mutex mutex_;                            // guards back_
  std::deque<wire::Returned> back_;
};

// What this side has given. When the connection ends, what the other has not returned stays as it is for as long as this process lives, and with it the
// arena that it lies in, for the other may hold rows of it that count. Threads: one.
class Given {
 public:
  Given() = default;
  Given(const Given&) = delete;
  ~Given();
  void push(Bytes bytes) { held_.push_back(std::move(bytes)); }
  bool take_back(const wire::Returned& returned);  // false: these were not given, or came back before
  void forget() { held_.clear(); }                 // the other is lost

 private:
  std::deque<Bytes> held_;                      // those that came back are empty
  std::uint64_t first_ = 0;                     // the number of the first
};

}  // namespace shoal::net
