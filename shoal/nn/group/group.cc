#include "shoal/nn/group/group.h"

#include <unistd.h>

#include "shoal/net/call.h"
#include "shoal/nn/group/group_loop.h"

namespace shoal::nn {
namespace {

Error closed_error() { return Error(Code::cancelled, "the process group was destroyed"); }

}  // namespace

Group::Group(std::unique_ptr<net::Job> job, Settings settings)
    : owner_(getpid()), rank_(job->place().rank), size_(job->place().size), job_(std::move(job)),
      loop_(std::make_shared<Loop>(job_->transport(), settings)) {
  job_->transport().post([loop = loop_] { loop->listen(); });
}

Group::~Group() { close(); }

std::shared_ptr<net::Job> Group::job() const {
  if (getpid() != owner_) {
    throw Error(Code::unsupported, "this process was forked from a member and is none itself", "process group",
                "a data loader's worker must not communicate");
  }
  const std::lock_guard lock(mutex_);
  if (!job_) throw closed_error();
  return job_;
}

bool Group::post(std::function<void()> fn) {
  const std::lock_guard lock(mutex_);
  if (job_) job_->transport().post(std::move(fn));
  return job_ != nullptr;
}

std::uint64_t Group::start(Collect what, Nanoseconds patience, net::Done done) {
  const auto job = this->job();
  const std::uint64_t sequence = ++sequence_;
  job->transport().post([loop = loop_, sequence, what = std::move(what), patience, done = std::move(done)]() mutable {
    loop->start(sequence, std::move(what), patience, std::move(done));
  });
  return sequence;
}

void Group::send(net::Rank to, std::uint32_t tag, std::span<const std::byte> bytes, Nanoseconds patience, net::Done done) {
  job()->transport().post([loop = loop_, to, tag, bytes, patience, done = std::move(done)]() mutable {
    loop->send(to, tag, bytes, patience, std::move(done));
  });
}

void Group::receive(std::optional<net::Rank> from, std::uint32_t tag, std::span<std::byte> into, Nanoseconds patience,
                    Points::Received done) {
  job()->transport().post([loop = loop_, from, tag, into, patience, done = std::move(done)]() mutable {
    loop->receive(from, tag, into, patience, std::move(done));
  });
}

void Group::monitored_barrier(Nanoseconds patience, bool all_missing, net::Done done) {
  job()->transport().post([loop = loop_, patience, all_missing, done = std::move(done)]() mutable {
    loop->monitored_barrier(patience, all_missing, std::move(done));
  });
}

bool Group::wait(const std::function<bool()>& ready, Nanoseconds patience) {
  if (ready()) return true;
  const auto job = this->job();
  return job->transport().drive(ready, job->transport().now() + patience);
}

std::shared_ptr<std::byte> Group::lendable(std::size_t bytes) const { return job()->transport().lendable(bytes); }

std::pair<std::uint64_t, std::uint64_t> Group::sent() const {
  const auto joined = job();
  std::pair<std::uint64_t, std::uint64_t> sums;
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const auto link = joined->transport().link(peer);
    sums.first += link.sent;
    sums.second += link.lent;
  }
  return sums;
}

std::string Group::waiting() const {
  const auto job = this->job();
  return net::call(job->transport(), [loop = loop_] { return loop->waiting(); }).value_or("");
}

void Group::abort(const Error& why) {
  job()->transport().post([loop = loop_, why] { loop->abort(why); });
}

void Group::close() {
  std::shared_ptr<net::Job> job;
  {
    const std::lock_guard lock(mutex_);
    job.swap(job_);
  }
  if (!job) return;
  if (getpid() != owner_) {
    // A forked child's copy: its loop does not run, so nothing that lives there can be taken down.
    static_cast<void>(new std::shared_ptr<Loop>(loop_));
    return;
  }
  // What peers wait for goes first: they must not take this member's leaving for the end of a barrier that it let them pass.
  net::ask<bool>(job->transport(), net::kLoopAnswers, [loop = loop_](const auto& tell) { loop->when_told([tell] { tell(true); }); });
  // The runner must be gone before its transport. What it ends is ended by then too.
  net::call(job->transport(), [loop = loop_] { loop->close(); });
}

}  // namespace shoal::nn
