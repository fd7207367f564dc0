#include "shoal/observe/tensorboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shoal::observe {

TensorBoard::TensorBoard(const std::filesystem::path& folder, Author who)
    : who_(std::move(who)), before_(last_step(folder)), file_(folder) {
  file_.flush();
}

void TensorBoard::take(const std::vector<Event>& events) {
  if (placed_) return put(events);
  held_.insert(held_.end(), events.begin(), events.end());
  if (place(false)) put(std::exchange(held_, {}));
}

void TensorBoard::close() {
  if (placed_) return;
  place(true);
  put(std::exchange(held_, {}));
}

// Finds out what is held back for: from which iteration to which step.
bool TensorBoard::place(bool now) {
  std::optional<std::int64_t> first, latest;
  for (const Event& event : held_) {
    if (event.step < 0) continue;
    if (event.kind == EventKind::metric) {
      if (latest) shift_ = event.step - *latest;
      return placed_ = true;
    }
    if (event.kind != EventKind::forward && event.kind != EventKind::backward && event.kind != EventKind::optimizer) continue;
    if (!first) first = event.step;
    latest = event.step;
  }
  if (!now && (!first || ++flushes_ < 2)) return false;
  if (first && before_ && on_axis(*first) <= *before_) shift_ = *before_ + 1 - *first;
  return placed_ = true;
}

void TensorBoard::put(const std::vector<Event>& events) {
  for (const Event& event : events) {
    switch (event.kind) {
      case EventKind::metric: metric(event); break;
      case EventKind::received: window_.received[event.peer] += event.value; break;
      case EventKind::forward: window_.samples += event.value; [[fallthrough]];
      case EventKind::backward:
      case EventKind::exposed:
      case EventKind::optimizer: note_step(event); break;
      default: break;
    }
  }
  derive();
  file_.flush();
}

void TensorBoard::note_step(const Event& event) {
  if (!window_.begin) window_.begin = event.begin;
  window_.end = std::max(window_.end, event.end);
  if (event.kind == EventKind::exposed) window_.exposed += Seconds(event.end - event.begin).count();
  if (event.kind == EventKind::optimizer) ++window_.steps;
  if (event.step >= 0) iteration_ = event.step;
}

void TensorBoard::metric(const Event& event) {
  if (event.step >= 0 && iteration_) shift_ = event.step - *iteration_;
  const std::int64_t step = event.step >= 0 ? event.step : iteration_ ? on_axis(*iteration_) : before_.value_or(-1) + 1;
  scalar(event.begin, step, Events::local().name_of(event.name), event.value);
}

void TensorBoard::derive() {
  const double seconds = window_.begin ? Seconds(window_.end - *window_.begin).count() : 0;
  if (window_.steps == 0 || seconds <= 0 || !iteration_) return;
  const std::int64_t step = on_axis(*iteration_);
  if (window_.samples > 0) scalar(window_.end, step, "samples_per_second", window_.samples * who_.size / seconds);
  if (who_.size > 1) scalar(window_.end, step, "exposed_share", window_.exposed / seconds);
  for (const auto& [peer, bytes] : window_.received) {
    scalar(window_.end, step, fmt::format("received_MB_per_second/from_rank_{}", peer), bytes / 1e6 / seconds);
  }
  const Instant end = window_.end;
  window_ = {};
  window_.begin = window_.end = end;
}

void TensorBoard::scalar(Instant at, std::int64_t step, const std::string& tag, double value) {
  if (!begun_ && before_) file_.begin_session(unix_seconds(at), step);
  begun_ = true;
  file_.scalar(unix_seconds(at), step, tag, value);
}

double TensorBoard::unix_seconds(Instant at) const {
  return Seconds(at.time_since_epoch() + Nanoseconds(who_.unix_minus_steady_ns)).count();
}

}  // namespace shoal::observe
