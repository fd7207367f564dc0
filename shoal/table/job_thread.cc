#include "shoal/table/job_thread.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "shoal/core/host.h"

namespace shoal::table {
namespace {

Seconds cpu_time_of_this_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

// How long a leisurely thread rests after each of its jobs.
class Rests {
 public:
  Rests() : then_(now()) {}
  // After a job; since the one before it this thread has worked for nothing else.
  Seconds next() {
    const Times before = std::exchange(then_, now());
    return rest_after(then_.own - before.own, then_.all - before.all, Seconds(then_.at - before.at));
  }

 private:
  struct Times {
    Instant at;
    Seconds own, all;                 // processor time, of this thread and of its process
  };
  static Times now() { return {steady_now(), cpu_time_of_this_thread(), Seconds(cpu_seconds())}; }

  Times then_;
};

}  // namespace

Seconds rest_after(Seconds own, Seconds all, Seconds elapsed) {
  constexpr double most = 20;
  return elapsed > Seconds(0) ? most * std::clamp((all - own) / elapsed, 0.0, 1.0) * own : Seconds(0);
}

JobThread::~JobThread() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void JobThread::run(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_one();
}

void JobThread::work() {
  constexpr int gives_way = 10;       // a tenth of the weight of others; it goes on beside them
  if (pace_ == Pace::leisurely) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), gives_way);
  Rests rests;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return over_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    {
      const auto job = std::exchange(jobs_.front(), {});
      jobs_.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
    if (pace_ == Pace::leisurely) changed_.wait_for(lock, rests.next(), [&] { return over_; });
  }
}

}  // namespace shoal::table
