#include "shoal/collective/waits.h"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::collective {

namespace {

// Moments as numbers: 2 x (instance x kSlices + slice), plus 1 for done.
std::uint32_t begin_of(std::uint32_t instance, std::uint32_t slice) { return 2 * (instance * kSlices + slice); }
std::uint32_t done_of(std::uint32_t instance, std::uint32_t slice) { return begin_of(instance, slice) + 1; }
Moment moment(std::uint32_t number) { return {number / 2 / kSlices, number / 2 % kSlices, number % 2 == 1}; }

// Calls wait(earlier, later) for every pair of moments that must not be the other way round.
template <typename Wait>
void for_each_wait(const Unrolled& all, Wait wait) {
  for (std::uint32_t i = 0; i < all.instances.size(); ++i) {
    const Instance& at = all.instances[i];
    const bool first_of_lane = i == 0 || all.instances[i - 1].lane != at.lane || all.instances[i - 1].rank != at.rank;
    for (std::uint32_t s = 0; s < kSlices; ++s) {
      wait(begin_of(i, s), done_of(i, s));
      if (s > 0) wait(done_of(i, s - 1), begin_of(i, s));
      else if (!first_of_lane) wait(done_of(i - 1, kSlices - 1), begin_of(i, 0));

      for (const std::uint32_t earlier : all.after[i]) {
        wait(done_of(earlier, by_slice(all, earlier, i) ? s : kSlices - 1), begin_of(i, s));
      }
      if (at.op->kind == OpKind::send) {
        wait(begin_of(all.partner[i], s), done_of(i, s));
        wait(done_of(i, s), done_of(all.partner[i], s));
      }
      if (all.reader[i] != kNone) {  // room in the window: the slice kDepth places ahead was read
        const bool same = s >= kDepth;
        const std::uint32_t ahead = same ? i : all.earlier_write[i];
        if (ahead != kNone) wait(done_of(all.reader[ahead], same ? s - kDepth : s + kSlices - kDepth), begin_of(i, s));
      }
    }
  }
}

// Of moments that all wait for another of them: one cycle in words.
[[noreturn]] void refuse_cycle(const Unrolled& all, const std::vector<std::uint32_t>& open) {
  std::vector<std::uint32_t> waits_for(open.size(), kNone);
  for_each_wait(all, [&](std::uint32_t earlier, std::uint32_t later) {
    if (open[earlier] > 0 && open[later] > 0) waits_for[later] = earlier;
  });
  std::uint32_t at = 0;
  while (open[at] == 0) ++at;
  std::vector<bool> seen(open.size());
  for (; !seen[at]; at = waits_for[at]) seen[at] = true;  // now `at` lies on a cycle

  std::vector<std::uint32_t> around;                      // its instances, each named once
  for (std::uint32_t next = at; around.empty() || next != at; next = waits_for[next]) {
    const std::uint32_t instance = moment(next).instance;
    if (std::find(around.begin(), around.end(), instance) == around.end()) around.push_back(instance);
  }
  std::string more;
  constexpr std::size_t kShown = 4;
  for (std::size_t k = 1; k < std::min(around.size(), kShown); ++k) {
    more += fmt::format("{}{}", k == 1 ? ", which waits for " : ", for ", place(all.instances[around[k]]));
  }
  if (around.size() > kShown) more += fmt::format(", and {} more", around.size() - kShown);
  refuse(all.program, all.instances[around[0]], "waits for itself" + more);
}

}  // namespace

bool by_slice(const Unrolled& program, std::uint32_t earlier, std::uint32_t later) {
  return program.instances[earlier].chunk == program.instances[later].chunk;
}

std::vector<Moment> order_of(const Unrolled& all) {
  const std::size_t moments = all.instances.size() * kSlices * 2;
  std::vector<std::uint32_t> open(moments, 0);               // how many it still waits for
  std::vector<std::uint32_t> first(moments + 1, 0);           // later[first[m]..first[m+1]): who waits for m
  for_each_wait(all, [&](std::uint32_t earlier, std::uint32_t later) {
    ++open[later];
    ++first[earlier + 1];
  });
  for (std::size_t m = 0; m < moments; ++m) first[m + 1] += first[m];
  std::vector<std::uint32_t> later_of(first[moments]), filled(first.begin(), first.end() - 1);
  for_each_wait(all, [&](std::uint32_t earlier, std::uint32_t later) { later_of[filled[earlier]++] = later; });

  std::vector<std::uint32_t> ready;
  for (std::uint32_t m = 0; m < moments; ++m) {
    if (open[m] == 0) ready.push_back(m);
  }
  for (std::size_t k = 0; k < ready.size(); ++k) {
    const std::uint32_t m = ready[k];
    for (std::uint32_t e = first[m]; e < first[m + 1]; ++e) {
      if (--open[later_of[e]] == 0) ready.push_back(later_of[e]);
    }
  }
  if (ready.size() < moments) refuse_cycle(all, open);

  std::vector<Moment> order;
  order.reserve(moments);
  for (const std::uint32_t m : ready) order.push_back(moment(m));
  return order;
}

}  // namespace shoal::collective
