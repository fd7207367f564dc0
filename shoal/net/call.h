// Waiting for what happens on a transport's loop, from any other thread and never without a bound.
//
// Patience counts the time that the loop was given, in turns, and not the time on the clock: a process that was stopped
// for a while, or whose machine slept, has not run out of it meanwhile.
//
// Lifetime: what is handed over owns all that it refers to. A caller whose patience is over leaves, and the loop may
// still come to it. `where` is a Transport, or in this room the Loop itself.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::net {

class Loop;

// Handlers never block: a loop that is silent for so long does not run any more.
inline constexpr Nanoseconds kLoopAnswers = std::chrono::seconds(10);

inline Instant clock_of(const Transport& transport) { return transport.now(); }
inline Instant clock_of(const Loop&) { return steady_now(); }

// Transport::drive with patience instead of a deadline.
template <class Where>
bool wait_for(Where& where, const std::function<bool()>& ready, Nanoseconds patience) {
  constexpr Nanoseconds turn = std::chrono::seconds(1);
  for (Nanoseconds left = patience; left > Nanoseconds::zero(); left -= turn) {
    if (where.drive(ready, clock_of(where) + std::min(left, turn))) return true;
  }
  return false;
}

// Begins something on the loop and returns what it tells: begin(tell), then tell(value) once, on the loop, at once or later.
// nullopt if it has told nothing when the patience is over.
template <class Told, class Where, class Begin>
std::optional<Told> ask(Where& where, Nanoseconds patience, Begin begin) {
  struct Asked {
    std::atomic<bool> known{false};
    std::optional<Told> told;  // before `known`
  };
  const auto answer = std::make_shared<Asked>();
  where.post([answer, begin = std::move(begin)]() mutable {
    begin([answer](Told told) {
      answer->told = std::move(told);
      answer->known.store(true, std::memory_order_release);
    });
  });
  if (!wait_for(where, [&] { return answer->known.load(std::memory_order_acquire); }, patience)) return std::nullopt;
  return std::move(answer->told);
}

// Runs fn on the loop. What it returned, or nullopt; where it returns nothing: whether it has run.
template <class Where, class Fn>
auto call(Where& where, Fn fn) {
  using Result = std::invoke_result_t<Fn&>;
  if constexpr (std::is_void_v<Result>) {
    return ask<bool>(where, kLoopAnswers, [fn = std::move(fn)](const auto& tell) mutable {
             fn();
             tell(true);
           }).has_value();
  } else {
    return ask<Result>(where, kLoopAnswers, [fn = std::move(fn)](const auto& tell) mutable { tell(fn()); });
  }
}

}  // namespace shoal::net
