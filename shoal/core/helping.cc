#include "shoal/core/helping.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "shoal/core/host.h"

namespace shoal {
namespace {

using Body = std::function<void(std::size_t, std::size_t)>;

class Helper {
 public:
  void share(std::size_t count, std::size_t piece, const Body& body) {
    std::unique_lock lock(mutex_);
    if (work_.body || busy_ || !has_thread()) {
      lock.unlock();
      return body(0, count);
    }
    const Work work = work_ = {&body, count, piece};
    next_ = 0;
    lock.unlock();
    news_.notify_all();
    take_pieces(work);
    lock.lock();
    work_.body = nullptr;
    const std::size_t round = rounds_;
    news_.wait(lock, [&] { return !busy_ || rounds_ != round; });
  }

 private:
  struct Work {
    const Body* body = nullptr;  // of who is helped
    std::size_t count = 0, piece = 0;
  };
  bool has_thread() {
    if (started_) return true;
    try {
      std::thread([this] { help(); }).detach();
      started_ = true;
    } catch (const std::system_error&) {  // there are as many as may be
    }
    return started_;
  }
  [[noreturn]] void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      news_.wait(lock, [this] { return work_.body && next_ < work_.count; });
      const Work work = work_;
      busy_ = true;
      lock.unlock();
      take_pieces(work);
      lock.lock();
      busy_ = false;
      ++rounds_;
      news_.notify_all();
    }
  }
  void take_pieces(const Work& work) {
    for (std::size_t begin = next_.fetch_add(work.piece); begin < work.count; begin = next_.fetch_add(work.piece)) {
      (*work.body)(begin, std::min(begin + work.piece, work.count));
    }
  }

  std::mutex mutex_;
  std::condition_variable news_;
  bool started_ = false, busy_ = false;  // it takes pieces
  std::size_t rounds_ = 0;               // that it has ended
  Work work_;
  std::atomic<std::size_t> next_{0};     // piece that nobody has taken, by its first element
};

// Never destroyed: its thread waits until the process ends. A forked process has no such thread, and gets another.
Helper* of_process = new Helper;
const int at_fork = ::pthread_atfork(nullptr, nullptr, [] { of_process = new Helper; });

}  // namespace

void share(std::size_t count, std::size_t piece, const Body& body) {
  static const bool several = at_fork == 0 && usable_cores().size() > 1;
  if (!several || count <= piece) return body(0, count);
  of_process->share(count, piece, body);
}

}  // namespace shoal
