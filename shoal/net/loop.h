// The process's one event loop: an Asio io_context and the I/O thread that runs it, shared by every transport,
// coordinator and handshake of the process.
//
// Who runs it. At any moment at most one thread, the *driver*, runs handlers, so handlers need no locks among
// themselves. Normally that is the I/O thread. A caller that waits (drive) takes the role over and runs handlers
// itself, so that a small operation costs no thread switch; between back-to-back waits the I/O thread stays parked
// for kPark. A caller that leaves while work is open wakes the I/O thread at once.
// Handlers must not throw: what escapes one ends the process with one line, whoever drove.
//
// Lifetime: made at first use, never destroyed. A forked child has none of it: sockets are closed there and the
// next use makes a new loop.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::net {

// Something to do before the loop sleeps again, however often it was asked for meanwhile: a peer writes what its
// streams have gathered. Owned by its maker, who outlives its place in the queue (Loop::forget).
class Chore {
 public:
  virtual ~Chore() = default;
  virtual void run_chore() = 0;

 private:
  friend class Loop;
  bool queued_ = false;
};

// Memory in which other processes leave something for this one. The kernel does not tell: it is looked at between handlers
// and, before the loop sleeps, once more after they have been told to ring the bell. Owned by its maker, who unwatches it.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual bool look() = 0;              // does some of what there is to do; false: nothing
  virtual void asleep(bool asleep) = 0; // whether others must ring the bell after they have left something
};

class Loop {
 public:
  static Loop& shared();

  asio::io_context& io() { return io_; }
  bool on_loop() const;
  // Any thread. `fn` runs on the loop after everything posted before it by the same thread.
  void post(std::function<void()> fn);
  // Any thread but the loop: see Transport::drive.
  bool drive(const std::function<bool()>& ready, Instant deadline);

  // From the loop only:
  std::uint64_t at(Instant when, std::function<void()> fn);
  void cancel(std::uint64_t timer);
  void complete(Done done, Failure failure);  // runs soon, never inside the caller
  void progress() { ran_ = true; }            // something that a waiter's ready() looks at has changed
  void chore(Chore& chore);
  void forget(Chore& chore);
  void watch(Watched& memory);
  void unwatch(Watched& memory);
  int bell();                                 // an eventfd: a write wakes the loop. -1 where the system gives none
  void open_work(std::int64_t change) { open_work_ += change; }  // operations that wait for the network

 private:
  Loop();
  void run_io_thread();
  void cycle(Instant deadline, Instant long_from);
  // One step of the driver: posts, or one handler, for which it sleeps until the deadline; before `long_from` it looks first.
  void step(Instant deadline, Instant long_from);
  bool look(Instant until);      // a few times for something to do, letting others run in between
  bool look_at_memory();
  void sleep(Instant deadline);  // until something is to do
  void hear_bell();
  void settle();                 // completions and chores, until none is left
  void poke();                   // mutex_ held: a driver asleep in the reactor returns

  asio::io_context io_{1};       // 1: never run by two threads at once
  // From the beginning, for a context that once had nothing to do is stopped for good.
  const asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  // Owned by the driver:
  std::deque<std::pair<Done, Failure>> completions_;
  std::deque<Chore*> chores_;
  std::vector<Watched*> watched_;
  unsigned turns_ = 0;           // of watched memory in a row
  asio::posix::stream_descriptor bell_{io_};
  std::uint64_t rung_ = 0;       // what the bell's reads fill
  std::map<std::uint64_t, std::unique_ptr<asio::steady_timer>> timers_;
  std::uint64_t next_timer_ = 1;
  bool ran_ = false;             // as progress() says, since the waiters were last told

  enum class Driver { none, io_thread, caller };
  std::mutex mutex_;             // guards what follows
  Driver driver_ = Driver::none;
  std::vector<std::function<void()>> posts_;
  int waiting_ = 0;              // callers inside drive()
  bool claimed_ = false;         // a caller wants the I/O thread to step back
  std::uint64_t progress_ = 0;   // counts moments at which a waiter's ready() may have changed
  Instant left_{};               // when the last caller left with nothing open
  std::uint64_t drives_ = 0;     // counts callers that took over
  // What the I/O thread waits for before it looks again: long only behind one long wait, so that a caller need not
  // wake it (a thread switch) when it leaves after a short one.
  Nanoseconds park_{};
  std::condition_variable changed_;  // waiters: progress_ or driver_
  std::condition_variable unpark_;   // the I/O thread
  std::atomic<bool> asleep_{false};  // the driver is in the reactor or about to enter it
  std::atomic<std::int64_t> open_work_{0};
};

}  // namespace shoal::net
