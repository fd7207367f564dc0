// What speaks for topics in a document whose counts are laid out by topic (by_topic.h): C_dk psi_k, summed over groups of topics once for all tokens of
// a word, and kept up to date while these move. Included once per target (Highway), only by exact.cc.

#if defined(SHOAL_LEARN_TOPIC_BY_TOPIC_RUN_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SHOAL_LEARN_TOPIC_BY_TOPIC_RUN_INL_H
#undef SHOAL_LEARN_TOPIC_BY_TOPIC_RUN_INL_H
#else
#define SHOAL_LEARN_TOPIC_BY_TOPIC_RUN_INL_H
#endif

#include <algorithm>

#include <hwy/highway.h>

#include "shoal/learn/topic/by_topic.h"
#include "shoal/learn/topic/exact.h"
#include "shoal/learn/topic/lines-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::learn::topic {
namespace HWY_NAMESPACE {

class DocumentSums {
 public:
  DocumentSums(const Laid& laid, const ByTopic& by_topic)
      : topics_(laid.topics), lines_((topics_ + kLine - 1) / kLine), psi_(laid.psi.data()), sums_(by_topic.sums()) {}

  void forget() { counts_ = nullptr; }  // there is another word
  // Of the document with these counts, unless they are its already.
  void make(std::uint32_t* counts) {
    if (counts == counts_) return;
    counts_ = counts;
    all_ = 0;
    for (std::uint32_t group = 0; group < groups(); ++group) {
      Floats sums[kParts];
      for (Floats& sum : sums) sum = hn::Zero(F());
      const std::uint32_t begin = group * ByTopic::kGroup;
      for (std::uint32_t i = 0; i < lines_of(group) * kLine; i += kLine) {
        for (std::size_t part = 0; part < kParts; ++part) sums[part] = hn::Add(sums[part], weights(begin + i + part * kLanes));
      }
      sums_[group] = sum_of(sums);
      all_ += sums_[group];
    }
  }

  std::uint32_t count(Topic topic) const { return counts_[topic]; }
  float others(Topic own) const { return std::max(0.0f, static_cast<float>(all_ - weight(own))); }
  // Where u in [0, others(own)) falls among the topics but `own`; that one where rounding leads to nothing.
  Topic draw(float u, Topic own, float* HWY_RESTRICT scan) const {
    const std::size_t group = group_of(sums_, groups(), own / ByTopic::kGroup, weight(own), scan, u);
    if (group == groups()) return own;
    const auto begin = static_cast<std::uint32_t>(group) * ByTopic::kGroup;
    alignas(64) float cumulative[ByTopic::kGroup];
    const auto weigh = [&](std::size_t at) HWY_ATTR { return weights(begin + at); };
    const std::size_t at = begin + place_among(lines_of(group), own - begin, u, cumulative, scan, weigh);
    return counts_[at] != 0 ? static_cast<Topic>(at) : own;
  }

  // A token goes from one to the other; psi of both changes between leave() and arrive().
  void leave(Topic from, Topic to) {
    add(from, -weight(from));
    add(to, -weight(to));
    --counts_[from];
    ++counts_[to];
  }
  void arrive(Topic from, Topic to) {
    add(from, weight(from));
    add(to, weight(to));
  }

 private:
  std::uint32_t groups() const { return (topics_ + ByTopic::kGroup - 1) / ByTopic::kGroup; }
  std::uint32_t lines_of(std::size_t group) const {
    return std::min(kLine, static_cast<std::uint32_t>(lines_ - group * kLine));
  }
  Floats weights(std::size_t at) const {
    const auto counts = hn::BitCast(I(), hn::Load(U(), counts_ + at));
    return hn::Mul(load(psi_ + at), hn::ConvertTo(F(), counts));
  }
  float weight(Topic topic) const { return psi_[topic] * static_cast<float>(static_cast<std::int32_t>(counts_[topic])); }
  void add(Topic topic, float more) {
    sums_[topic / ByTopic::kGroup] += more;
    all_ += more;
  }

  const std::uint32_t topics_, lines_;
  const float* const psi_;
  float* const sums_;
  std::uint32_t* counts_ = nullptr;
  double all_ = 0;
};

}  // namespace HWY_NAMESPACE
}  // namespace shoal::learn::topic
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
