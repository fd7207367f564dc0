#include "shoal/collective/waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

namespace shoal::collective {

namespace {

// Moments as numbers, ascending along a lane: 2 x (instance x kSlices + slice), plus 1 for done. Without windows a chunk is one slice, the last.
using Moment = std::uint32_t;
static_assert(std::uint64_t{kMaxInstances} * kSlices * 2 < kNone);
Moment begin_of(std::uint32_t instance, std::uint32_t slice) { return 2 * (instance * kSlices + slice); }
Moment done_of(std::uint32_t instance, std::uint32_t slice) { return begin_of(instance, slice) + 1; }
std::uint32_t instance_of(Moment moment) { return moment / 2 / kSlices; }

// Lanes go on, each as far as it can, until nobody can.
class StrictRun {
 public:
  explicit StrictRun(const Unrolled& all) : all_(all), first_slice_(all.reader.empty() ? kSlices - 1 : 0), lanes_(all.rows()) {
    order_.reserve(all.instances.size());
    for (std::uint32_t row = 0; row < all.rows(); ++row) lanes_[row].next = begin_of(all.row_begin[row], first_slice_);
  }

  std::vector<std::uint32_t> to_the_end() {
    std::deque<std::uint32_t> ready;
    for (std::uint32_t row = 0; row < all_.rows(); ++row) ready.push_back(row);
    while (!ready.empty()) {
      const std::uint32_t row = ready.front();
      ready.pop_front();
      go_on(row);
      auto& waiting = lanes_[row].waiting;
      while (!waiting.empty() && waiting.front().first < lanes_[row].next) {
        ready.push_back(waiting.front().second);
        std::pop_heap(waiting.begin(), waiting.end(), std::greater());
        waiting.pop_back();
      }
    }
    if (order_.size() < all_.instances.size()) refuse_cycle();
    for (std::uint32_t row = 0; row < all_.rows(); ++row) {
      if (!at_end(row)) refuse_cycle();
    }
    return std::move(order_);
  }

 private:
  struct LaneState {
    Moment next = 0;                 // the first that has not come yet
    Moment wanted = 0;               // what it waits for, while blocked
    std::uint32_t met = 0;           // of what `next` waits for, so many are known to have come
    std::vector<std::pair<Moment, std::uint32_t>> waiting;  // (moment of this lane, who waits for it): a heap, the earliest in front
  };

  bool at_end(std::uint32_t row) const { return lanes_[row].next == begin_of(all_.row_begin[row + 1], first_slice_); }
  std::uint32_t row_of(Moment moment) const { return all_.place(instance_of(moment)).row; }
  bool has_come(Moment moment) const { return lanes_[row_of(moment)].next > moment; }

  // The k-th of the moments, in other lanes or further up, that `moment` waits for; kNone: there is none by this number, or none is left.
  Moment cause(Moment moment, std::uint32_t k, bool& more) const {
    const std::uint32_t i = instance_of(moment), s = moment / 2 % kSlices;
    const Op& op = all_.op(i);
    more = false;
    if (moment % 2 == 1) {  // done
      if (k > 0 || all_.instances[i].partner == kNone) return kNone;
      return op.kind == OpKind::send ? begin_of(all_.instances[i].partner, s) : done_of(all_.instances[i].partner, s);
    }
    if (k < op.after.size()) {
      more = true;
      const std::uint32_t earlier = all_.after(i, k);
      return earlier == kNone ? kNone : done_of(earlier, by_slice(all_, earlier, i) ? s : kSlices - 1);
    }
    if (k > op.after.size() || all_.reader_of(i) == kNone) return kNone;
    const bool same = s >= kDepth;  // room in the window: the slice kDepth places ahead was read
    const std::uint32_t ahead = same ? i : all_.earlier_write[i];
    return ahead == kNone ? kNone : done_of(all_.reader[ahead], same ? s - kDepth : s + kSlices - kDepth);
  }

  void go_on(std::uint32_t row) {
    LaneState& lane = lanes_[row];
    while (!at_end(row)) {
      bool more = true;
      while (more) {
        const Moment wanted = cause(lane.next, lane.met, more);
        if (wanted != kNone && !has_come(wanted)) {
          lane.wanted = wanted;
          auto& waiting = lanes_[row_of(wanted)].waiting;
          waiting.emplace_back(wanted, row);
          std::push_heap(waiting.begin(), waiting.end(), std::greater());
          return;
        }
        ++lane.met;
      }
      lane.met = 0;
      if (lane.next % (2 * kSlices) == 2 * first_slice_ + 1) order_.push_back(instance_of(lane.next));
      ++lane.next;
      if (lane.next % (2 * kSlices) == 0) lane.next += 2 * first_slice_;
    }
  }

  // Every lane that is not at its end waits for one that is not, either: one cycle in words.
  [[noreturn]] void refuse_cycle() const {
    std::uint32_t row = 0;
    while (at_end(row)) ++row;
    std::vector<bool> seen(all_.rows());
    for (; !seen[row]; row = row_of(lanes_[row].wanted)) seen[row] = true;  // now `row` lies on a cycle
    std::vector<std::uint32_t> around;                                      // what its lanes stand at
    for (std::uint32_t next = row; around.empty() || next != row; next = row_of(lanes_[next].wanted)) {
      around.push_back(instance_of(lanes_[next].next));
    }
    std::string more;
    constexpr std::size_t kShown = 4;
    for (std::size_t k = 1; k < std::min(around.size(), kShown); ++k) {
      more += fmt::format("{}{}", k == 1 ? ", which waits for " : ", for ", words(all_, around[k]));
    }
    if (around.size() > kShown) more += fmt::format(", and {} more", around.size() - kShown);
    refuse(all_, around[0], "waits for itself" + more);
  }

  const Unrolled& all_;
  const std::uint32_t first_slice_;
  std::vector<LaneState> lanes_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::vector<std::uint32_t> order_of(const Unrolled& all) { return StrictRun(all).to_the_end(); }

Histories::Histories(const Unrolled& all, std::vector<std::uint32_t> order) : instances_(order.size()), first_(all.program.chunks + 1, 0) {
  for (const Instance& at : all.instances) ++first_[at.chunk + 1];
  for (std::uint32_t chunk = 0; chunk < all.program.chunks; ++chunk) first_[chunk + 1] += first_[chunk];
  std::vector<std::uint32_t> filled(first_.begin(), first_.end() - 1);
  for (const std::uint32_t i : order) instances_[filled[all.instances[i].chunk]++] = i;
  place_ = std::move(order);  // its memory
  for (std::uint32_t chunk = 0; chunk < all.program.chunks; ++chunk) {
    for (std::uint32_t k = first_[chunk]; k < first_[chunk + 1]; ++k) place_[instances_[k]] = k - first_[chunk];
  }
}

}  // namespace shoal::collective
