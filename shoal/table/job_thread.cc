#include "shoal/table/job_thread.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace shoal::table {

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
  }
}

}  // namespace shoal::table
