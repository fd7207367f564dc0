#include "shoal/learn/topic/exact.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "shoal/learn/topic/exact.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "shoal/learn/topic/exact_run-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::learn::topic {
namespace HWY_NAMESPACE {

// Every row of the visit in turn: laid out, drawn from, taken up again.
Drawn DrawRuns(const Visit& visit, Laid& laid, const ByTopic& by_topic, std::vector<TopicCount>& row) {
  Drawn drawn;
  Run run(visit, laid, by_topic);
  const auto beta = static_cast<float>(visit.prior.beta);
  const auto runs = visit.block.runs_of(visit.number);
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    const auto counts = visit.slice.row(runs[i].place);
    run.row_sum = 0;
    run.long_row = counts.size() > laid.longest_list;
    if (run.long_row) std::fill_n(laid.groups.data(), laid.groups.size(), 0.0f);
    for (const auto& [topic, count] : counts) {
      Laid::Of& of = laid.of[topic];
      const auto tokens = static_cast<float>(count);
      const float weight = tokens * of.a();
      of.count = count;
      laid.psi[topic] = (tokens + beta) * of.inverse;
      laid.weights[run.long_row ? topic : laid.list.size()] = weight;
      laid.list.push_back(topic);
      laid.place[topic] = static_cast<std::uint32_t>(laid.list.size());
      run.row_sum += weight;
      if (run.long_row) laid.groups[topic / kGroup] += weight;
    }
    run.draw(runs[i].begin, runs[i + 1].begin, drawn);
    row.clear();
    for (const Topic topic : laid.list) {
      Laid::Of& of = laid.of[topic];
      if (of.count != 0) row.push_back({topic, of.count});
      laid.weights[run.long_row ? topic : laid.place[topic] - 1] = 0;
      laid.psi[topic] = beta * of.inverse;
      of.count = laid.place[topic] = 0;
    }
    laid.list.clear();
    visit.slice.store(runs[i].place, row);
  }
  return drawn;
}

}  // namespace HWY_NAMESPACE
}  // namespace shoal::learn::topic
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::learn::topic {

HWY_EXPORT(DrawRuns);

namespace {

constexpr std::size_t kBehind = 128;  // numbers that vectors may load behind the last topic

std::size_t padded(std::uint32_t topics) { return topics + kBehind; }

}  // namespace

Laid::Laid(std::uint32_t of_topics)
    : topics(of_topics), of(topics), place(topics), psi(padded(topics)), weights(padded(topics)), groups(padded(topics / kGroup)),
      longest_list(std::max<std::size_t>(96, topics / 128)), begun(topics), stays(topics), other(topics) {}

// What depends on C_k as a whole: once after each exchange of totals.
void Exact::begin(const Visit& visit) {
  const std::size_t entries = std::max(std::size_t{visit.block.longest_table} * kLine, padded(laid_.topics));
  if (laid_.cumulative.size() < entries) laid_.cumulative = Aligned<float>(entries);
  if (laid_.psi.size() < entries) {  // a document's table is looked at with its header, whose place says how many entries there are
    laid_.psi = Aligned<float>(entries);
    begun_ = false;
  }
  if (begun_ && ticks_ == visit.totals.ticks()) return;
  begun_ = true;
  ticks_ = visit.totals.ticks();
  laid_.growth = 1;
  const auto totals = visit.totals.counts();
  const auto beta = static_cast<float>(visit.prior.beta), beta_sum = static_cast<float>(visit.beta_sum);
  laid_.a_sum = 0;
  for (Topic topic = 0; topic < laid_.topics; ++topic) {
    Laid::Of& of = laid_.of[topic];
    of.alpha = static_cast<float>(visit.prior.alpha[topic]);
    of.inverse = Laid::inverse_of(totals[topic], beta_sum);
    of.without = Laid::inverse_without(totals[topic], beta_sum);
    laid_.begun[topic] = 1 / of.a();
    laid_.psi[topic] = beta * of.inverse;
    laid_.a_sum += of.a();
  }
  // Topics with less than their share are filled up by one that has more (Vose).
  below_.clear();
  above_.clear();
  const double share = laid_.topics / laid_.a_sum;
  for (Topic topic = 0; topic < laid_.topics; ++topic) {
    laid_.stays[topic] = static_cast<float>(laid_.of[topic].a() * share);
    laid_.other[topic] = topic;
    (laid_.stays[topic] < 1 ? below_ : above_).push_back(topic);
  }
  while (!below_.empty() && !above_.empty()) {
    const Topic less = below_.back(), more = above_.back();
    below_.pop_back();
    laid_.other[less] = more;
    laid_.stays[more] -= 1 - laid_.stays[less];
    if (laid_.stays[more] < 1) {
      above_.pop_back();
      below_.push_back(more);
    }
  }
  for (const Topic topic : below_) laid_.stays[topic] = 1;
}

Drawn Exact::sample(const Visit& visit) {
  begin(visit);
  by_topic_.lay_out(visit.block, visit.number);
  const Drawn drawn = HWY_DYNAMIC_DISPATCH(DrawRuns)(visit, laid_, by_topic_, row_);
  by_topic_.take_up(visit.block);
  return drawn;
}

}  // namespace shoal::learn::topic
#endif  // HWY_ONCE
