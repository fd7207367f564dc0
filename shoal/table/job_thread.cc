#include "shoal/table/job_thread.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "shoal/core/time.h"

namespace shoal::table {
namespace {

Seconds cpu_time(clockid_t of) {
  timespec time{};
  ::clock_gettime(of, &time);
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

// What a leisurely thread leaves to others between its jobs. The kernel alone does not see to it: who gives way is on a core for a few milliseconds all the same
// before another who has woken gets it, and where a virtual machine's disk takes its share of the cores, all of them stop.
class Rest {
 public:
  // Jobs and rests take turns; the first job begins now.
  Rest() : since_(steady_now()), others_(others()) {}
  void job_begins() { begin_ = steady_now(); }
  // Six times the job's time where the other threads of this process had a core all the time; none where they had none.
  Seconds after_job() {
    constexpr double most = 6;
    const Instant now = steady_now();
    const Seconds others_now = others();
    const double busy = std::min(1.0, (others_now - others_) / Seconds(now - since_));
    since_ = now;
    others_ = others_now;
    return most * busy * Seconds(now - begin_);
  }

 private:
  static Seconds others() { return cpu_time(CLOCK_PROCESS_CPUTIME_ID) - cpu_time(CLOCK_THREAD_CPUTIME_ID); }

  Instant since_, begin_;
  Seconds others_;
};

}  // namespace

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
  Rest rest;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return over_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    {
      const auto job = std::exchange(jobs_.front(), {});
      jobs_.pop_front();
      lock.unlock();
      rest.job_begins();
      job();
    }
    lock.lock();
    if (pace_ == Pace::leisurely) changed_.wait_for(lock, rest.after_job(), [&] { return over_; });
  }
}

}  // namespace shoal::table
