// In which order one state machine met what came to it, in a file: noted while it runs, or kept to in a later run, which is then the same to the bit.
//
// What comes to a server or to a member's copies of rows follows from the program, its seed and what came to the others before; only in which
// order it comes does not, nor do the answers of its surroundings: what time it is, whether a link is idle. So that is all the file has:
//
//   a line that says whose order it is;   events, each: source + 1, a print (one byte), and the answers given during it;   0
//
// with sources and answers as varints. A print is a few bits of what came: a run that is another one is told so. What a process had noted before it
// was killed is in the file, and behind the last event of a file the machine goes on freely. Threads: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "shoal/core/time.h"
#include "shoal/table/message.h"

namespace shoal::table {

// What is done about order, and where: a folder for each member, which may be the same. SHOAL_RECORD and SHOAL_REPLAY say it for a process.
struct OrderKept {
  enum class How : std::uint8_t { no, record, replay } how = How::no;
  std::filesystem::path folder{};
  explicit operator bool() const { return how != How::no; }
  static OrderKept from_environment();        // throws Error{invalid_argument}
};

class Order {
 public:
  using Source = std::uint32_t;
  struct Event {
    Source source;
    std::uint8_t print;
    bool operator==(const Event&) const = default;
  };
  // file: in kept.folder. whose: the whole first line. Throws Error{invalid_argument} where a file to be written is there, and where one to be read
  // is not, or is another's.
  Order(const OrderKept& kept, const std::string& file, const std::string& whose);
  ~Order();
  Order(const Order&) = delete;

  bool replays() const { return replays_; }
  // Of a replay, what happens next; none: nothing is told any more.
  std::optional<Event> next() const;
  void happens(Event event);                  // throws Error{mismatch} if it is not the next
  std::uint64_t answer(std::uint64_t here);   // within an event: what is the answer here, or was there
  Instant now(Instant here);                  // the same of the time, to the microsecond

 private:
  void put(std::uint64_t number);
  void put_byte(std::byte byte);
  std::uint64_t take();
  void map(std::size_t begin, std::size_t size);
  [[noreturn]] void fail(Code code, const std::string& what, const std::string& hint = "") const;

  const bool replays_;
  const std::filesystem::path file_;
  int descriptor_ = -1;
  std::span<std::byte> window_;               // of the file
  std::size_t begin_ = 0, at_ = 0;            // of the window in the file; in the window
  std::uint64_t events_ = 0;
  Instant now_{}, here_{};                    // as told last; by this machine's clock then
  bool over_ = false;                         // what is replayed has come to its end
};

std::uint8_t print_of(const Message& message);

// What comes to a state machine from the loop, in order: at once and noted, or when its turn has come. Threads: one at a time.
class InOrder {
 public:
  using Act = std::function<void()>;
  // unasked: does what a source of that number does, if that needs nothing to come; in a replay alone.
  InOrder(Order& order, std::function<bool(Order::Source source)> unasked = [](Order::Source) { return false; });
  void comes(Order::Event event, Act act);
  void go_on();                               // with what has come, as far as it is its turn

 private:
  Order& order_;
  const std::function<bool(Order::Source source)> unasked_;
  std::map<Order::Source, std::deque<std::pair<Order::Event, Act>>> come_;  // in a replay, and its turn has not
};

}  // namespace shoal::table
