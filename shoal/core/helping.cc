#include "shoal/core/helping.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "shoal/core/host.h"

namespace shoal {
namespace {

using Body = std::function<void(std::size_t, std::size_t)>;

class Helper {
 public:
  void share(std::size_t count, std::size_t piece, const Body& body) {
    std::unique_lock lock(mutex_);
    if (body_ || busy_) {
      lock.unlock();
      return body(0, count);
    }
    if (!started_) {
      std::thread([this] { help(); }).detach();
      started_ = true;
    }
    body_ = &body;
    count_ = count;
    piece_ = piece;
    next_ = 0;
    lock.unlock();
    news_.notify_all();
    take_pieces();
    lock.lock();
    body_ = nullptr;
    news_.wait(lock, [this] { return !busy_; });
  }

 private:
  [[noreturn]] void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      news_.wait(lock, [this] { return body_ != nullptr && next_ < count_; });
      busy_ = true;
      lock.unlock();
      take_pieces();
      lock.lock();
      busy_ = false;
      news_.notify_all();
    }
  }
  void take_pieces() {
    const Body& body = *body_;
    for (std::size_t begin = next_.fetch_add(piece_); begin < count_; begin = next_.fetch_add(piece_)) body(begin, std::min(begin + piece_, count_));
  }

  std::mutex mutex_;
  std::condition_variable news_;
  bool started_ = false, busy_ = false;  // it has pieces
  const Body* body_ = nullptr;           // of who is helped
  std::size_t count_ = 0, piece_ = 0;
  std::atomic<std::size_t> next_{0};     // piece that nobody has taken, by its first element
};

// Never destroyed: its thread waits until the process ends. A forked process has no such thread, and gets another.
Helper*& helper() {
  static Helper* of_process = [] {
    ::pthread_atfork(nullptr, nullptr, [] { helper() = new Helper; });
    return new Helper;
  }();
  return of_process;
}

}  // namespace

void with_help(std::size_t count, std::size_t piece, const Body& body) {
  static const bool several = usable_cores().size() > 1;
  if (!several || count <= piece) return body(0, count);
  helper()->share(count, piece, body);
}

}  // namespace shoal
