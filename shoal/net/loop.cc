#include "shoal/net/loop.h"

#include <pthread.h>
#include <sched.h>
#include <sodium.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <asio/buffer.hpp>
#include <asio/post.hpp>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "shoal/core/error.h"
#include "shoal/net/sockets.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

// How long the loop stays without a driver after a caller has left with nothing open. The next wait usually follows
// within microseconds; what arrives meanwhile lies in the kernel.
constexpr Nanoseconds kPark = 1ms;
constexpr Nanoseconds kDeepPark = 64ms;  // of the I/O thread behind a caller that waits long
// A post this soon after a wait is most likely followed by the next wait, whose caller will run it.
constexpr Nanoseconds kBackToBack = 50us;
// At the beginning of a wait the answer is mostly microseconds away, often in a process that waits for this core. Then a
// caller looks so often and lets others run in between: cheaper than to sleep and be woken. Later it sleeps at once.
constexpr Nanoseconds kShortWait = 500us;
constexpr int kLooks = 64;
constexpr unsigned kMemoryTurns = 16;  // looks at shared memory, of which each does a little, to one at the sockets

thread_local Loop* running = nullptr;  // the loop whose handlers this thread runs now

class Running {
 public:
  explicit Running(Loop* loop) { running = loop; }
  ~Running() { running = nullptr; }
};

struct SchedulingAttributes {  // sched_setattr(2)'s first version: the C library's header and the kernel's cannot both be included
  std::uint32_t size = sizeof(SchedulingAttributes), policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;  // ns
};

// A late I/O thread delays every member, and where all cores compute it would wait for a slice of theirs, milliseconds. So it asks for a short
// slice, which Linux 6.12 and later (EEVDF) answer with an early turn, from anybody; and for a higher priority, which only some may have. Where neither
// is given, the default serves.
void run_soon_when_woken() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), -5);
  SchedulingAttributes wanted;
  if (syscall(SYS_sched_getattr, 0, &wanted, sizeof wanted, 0) != 0 || wanted.policy != SCHED_OTHER) return;
  wanted.runtime = 100'000;  // the shortest that there is
  syscall(SYS_sched_setattr, 0, &wanted, 0);
}

std::mutex making;      // guards `the_loop`
Loop* the_loop = nullptr;

}  // namespace

Loop& Loop::shared() {
  const std::lock_guard lock(making);
  static const bool once = [] {
    pthread_atfork([] { making.lock(); sockets_before_fork(); },
                   [] { sockets_after_fork_parent(); making.unlock(); },
                   [] {
                     sockets_after_fork_child();
                     the_loop = nullptr;  // its thread does not exist here
                     running = nullptr;
                     making.unlock();
                   });
    return true;
  }();
  (void)once;
  if (sodium_init() < 0) throw Error(Code::internal, "libsodium has no source of random numbers");
  if (!the_loop) the_loop = new Loop;
  return *the_loop;
}

Loop::Loop() {
  std::thread([this] { run_io_thread(); }).detach();
}

bool Loop::on_loop() const { return running == this; }

void Loop::post(std::function<void()> fn) {
  const std::lock_guard lock(mutex_);
  posts_.push_back(std::move(fn));
  if (driver_ != Driver::none) {
    poke();
  } else if (waiting_ == 0 && steady_now() - left_ > kBackToBack) {
    left_ = {};
    unpark_.notify_one();
  }
}

void Loop::poke() {
  if (asleep_.exchange(false)) asio::post(io_, [] {});
}

bool Loop::drive(const std::function<bool()>& ready, Instant deadline) {
  if (ready()) return true;
  bool is_ready = false;
  std::unique_lock lock(mutex_);
  ++waiting_;
  while (!is_ready) {
    if (driver_ == Driver::none) {
      driver_ = Driver::caller;
      ++drives_;
      lock.unlock();
      {
        const Running mark(this);
        const Instant long_from = steady_now() + kShortWait;
        while (!(is_ready = ready()) && steady_now() < deadline) cycle(deadline, long_from);
      }
      lock.lock();
      driver_ = Driver::none;
      break;
    }
    if (driver_ == Driver::io_thread && !claimed_) {
      claimed_ = true;
      poke();
    }
    const std::uint64_t seen = progress_;
    lock.unlock();
    is_ready = ready();
    lock.lock();
    if (is_ready || steady_now() >= deadline) break;
    changed_.wait_until(lock, deadline, [&] { return progress_ != seen || driver_ == Driver::none; });
  }
  --waiting_;
  if (driver_ == Driver::none) {
    if (waiting_ > 0) {
      ++progress_;
      changed_.notify_all();
    } else {
      const bool open = open_work_ > 0 || !posts_.empty();
      left_ = open ? Instant{} : steady_now();
      if (open || park_ > kPark) unpark_.notify_one();
    }
  }
  return is_ready;
}

// Sockets get a turn now and then, however much there is in memory.
bool Loop::look_at_memory() {
  if (watched_.empty()) return false;
  if (++turns_ % kMemoryTurns == 0 && io_.poll_one() > 0) return true;
  bool found = false;
  for (Watched* memory : watched_) found = memory->look() || found;
  return found;
}

bool Loop::look(Instant until) {
  if (look_at_memory()) return true;
  if (steady_now() >= until) return false;
  for (int i = 0; i < kLooks; ++i) {
    if (io_.poll_one() > 0) return true;
    sched_yield();
    if (look_at_memory()) return true;
  }
  return false;
}

void Loop::sleep(Instant deadline) {
  for (Watched* memory : watched_) memory->asleep(true);
  // What was left just before nobody has rung for.
  if (!look_at_memory()) io_.run_one_until(deadline);
  for (Watched* memory : watched_) memory->asleep(false);
}

void Loop::watch(Watched& memory) {
  unwatch(memory);
  watched_.push_back(&memory);
}

void Loop::unwatch(Watched& memory) { std::erase(watched_, &memory); }

int Loop::bell() {
  if (bell_.is_open()) return bell_.native_handle();
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return -1;
  bell_.assign(fd);
  hear_bell();
  return fd;
}

void Loop::hear_bell() {
  bell_.async_read_some(asio::buffer(&rung_, sizeof rung_), [this](const std::error_code& error, std::size_t) {
    if (!error) hear_bell();
  });
}

void Loop::cycle(Instant deadline, Instant long_from) {
  try {
    step(deadline, long_from);
  } catch (const std::exception& error) {
    // Half-done operations cannot be told from done ones any more. The other members see this one's connections close.
    std::fprintf(stderr, "shoal: this member ends, its network loop failed: %s\n", error.what());
    std::_Exit(exit_code(Code::internal));
  }
}

void Loop::step(Instant deadline, Instant long_from) {
  std::vector<std::function<void()>> batch;
  {
    const std::lock_guard lock(mutex_);
    if (ran_) {
      ran_ = false;
      ++progress_;
      if (waiting_ > (driver_ == Driver::caller ? 1 : 0)) changed_.notify_all();
    }
    if (claimed_ && driver_ == Driver::io_thread) return;
    batch.swap(posts_);
    asleep_ = batch.empty();
  }
  if (batch.empty()) {
    if (!look(long_from)) sleep(deadline);
    asleep_ = false;
    settle();
    return;
  }
  ran_ = true;
  for (auto& fn : batch) {
    fn();
    settle();
  }
}

void Loop::settle() {
  while (!completions_.empty() || !chores_.empty()) {
    while (!completions_.empty()) {
      auto [done, failure] = std::move(completions_.front());
      completions_.pop_front();
      ran_ = true;
      done(failure);
    }
    if (!chores_.empty()) {
      Chore* chore = chores_.front();
      chores_.pop_front();
      chore->queued_ = false;
      chore->run_chore();
    }
  }
}

void Loop::run_io_thread() {
  run_soon_when_woken();
  pthread_setname_np(pthread_self(), "shoal-io");
  std::unique_lock lock(mutex_);
  for (;;) {
    park_ = kPark;
    while (driver_ != Driver::none || waiting_ > 0 || steady_now() - left_ < kPark) {
      const std::uint64_t seen = drives_;
      unpark_.wait_for(lock, park_);
      park_ = driver_ == Driver::caller && drives_ == seen ? kDeepPark : kPark;
    }
    driver_ = Driver::io_thread;
    claimed_ = false;
    while (!claimed_) {
      lock.unlock();
      {
        const Running mark(this);
        cycle(steady_now() + 1h, {});
      }
      lock.lock();
    }
    driver_ = Driver::none;
    changed_.notify_all();
  }
}

std::uint64_t Loop::at(Instant when, std::function<void()> fn) {
  const std::uint64_t id = next_timer_++;
  auto timer = std::make_unique<asio::steady_timer>(io_, std::chrono::time_point_cast<asio::steady_timer::duration>(when));
  timer->async_wait([this, id, fn = std::move(fn)](const std::error_code&) {
    const auto found = timers_.find(id);
    if (found == timers_.end()) return;  // cancelled
    timers_.erase(found);
    ran_ = true;
    fn();
  });
  timers_.emplace(id, std::move(timer));
  return id;
}

void Loop::cancel(std::uint64_t timer) { timers_.erase(timer); }

void Loop::complete(Done done, Failure failure) {
  if (done) completions_.emplace_back(std::move(done), std::move(failure));
}

void Loop::chore(Chore& chore) {
  if (chore.queued_) return;
  chore.queued_ = true;
  chores_.push_back(&chore);
}

void Loop::forget(Chore& chore) {
  std::erase(chores_, &chore);
  chore.queued_ = false;
}

}  // namespace shoal::net
