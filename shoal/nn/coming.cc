#include "shoal/nn/coming.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "shoal/net/again.h"

namespace shoal::nn {
namespace {

void say(const std::string& why) { std::fprintf(stderr, "shoal: %s; those who are left go on\n", why.c_str()); }

}  // namespace

void Coming::begin(const net::Place& before, std::vector<net::Rank> lost) {
  under_way_ = true;
  joining_ = std::jthread([this, before, lost = std::move(lost)](const std::stop_token& stop) {
    for (bool said = false; !stop.stop_requested(); said = true) {
      try {
        auto job = join_(before, said ? std::vector<net::Rank>() : lost, stop);
        const std::lock_guard lock(guard_);
        job_ = std::move(job);
        return;
      } catch (const Error& error) {
        if (error.code() == Code::cancelled) return;
        if (!said) say(error.fact());
      } catch (const std::exception& error) {
        if (!said) say(error.what());
      }
      std::unique_lock lock(guard_);
      pause_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
    }
  });
}

void Coming::tell(const net::Place& before, std::vector<net::Rank> lost) {
  const std::lock_guard lock(guard_);
  to_tell_ = {before, std::move(lost)};
  if (std::exchange(tells_, true)) return;  // the latest: whoever is lost is in it
  telling_ = std::jthread([this] {
    for (;;) {
      std::unique_lock held(guard_);
      const auto now = std::exchange(to_tell_, std::nullopt);
      if (!now) {
        tells_ = false;
        return;
      }
      held.unlock();
      try {
        net::tell_lost(now->first, now->second);
      } catch (const Error& error) {
        say(error.fact());
      } catch (const std::exception& error) {
        say(error.what());
      }
    }
  });
}

std::unique_ptr<net::Job> Coming::take() {
  const std::lock_guard lock(guard_);
  if (job_) under_way_ = false;
  return std::move(job_);
}

}  // namespace shoal::nn
