// Coroutines that nobody waits for. What escapes one is a fault of Shoal and must not vanish with it: it ends the process
// with its message, like what escapes any handler of the loop (loop.h).
#pragma once

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <exception>
#include <utility>

#include "shoal/net/loop.h"

namespace shoal::net {

inline void spawn(asio::awaitable<void> work) {
  asio::co_spawn(Loop::shared().io(), std::move(work), [](const std::exception_ptr& escaped) {
    if (escaped) std::rethrow_exception(escaped);
  });
}

}  // namespace shoal::net
