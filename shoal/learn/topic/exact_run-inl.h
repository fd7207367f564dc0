// The tokens of one word, drawn with the vectors of one instruction set. Included once per target (Highway), only by exact.cc.
//
// Words: a line is 16 entries of a document's table, or 16 topics of a row; parts are the vectors that hold a line.

#if defined(SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H
#undef SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H
#else
#define SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "shoal/learn/topic/counts.h"
#include "shoal/learn/topic/exact.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::learn::topic {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::CappedTag<float, kLine>;
using U = hn::RebindToUnsigned<F>;
using I = hn::RebindToSigned<F>;
using Floats = hn::Vec<F>;
constexpr std::size_t kLanes = hn::MaxLanes(F());
constexpr std::size_t kParts = kLine / kLanes;

HWY_INLINE Floats load(const float* from) { return hn::Load(F(), from); }

// Sums of the lanes up to each one, in `sums`[0..15]; before them `sums`[-1] is 0. In the same order for all targets: within four lanes, then over
// fours.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void add_within_fours(const Floats (&line)[kParts], float* HWY_RESTRICT sums) {
  for (std::size_t i = 0; i < kLine; ++i) sums[i] = hn::GetLane(line[i]);
  for (const std::size_t apart : {1, 2}) {
    for (std::size_t i = kLine; i-- > 0;) {
      if (i % 4 >= apart) sums[i] += sums[i - apart];
    }
  }
}
#else
HWY_INLINE Floats add_within_fours(Floats v) {
  v = hn::Add(v, hn::ShiftLeftLanes<1>(F(), v));
  return hn::Add(v, hn::ShiftLeftLanes<2>(F(), v));
}
HWY_INLINE void add_within_fours(const Floats (&line)[kParts], float* HWY_RESTRICT sums) {
  for (std::size_t part = 0; part < kParts; ++part) hn::Store(add_within_fours(line[part]), F(), sums + part * kLanes);
}
#endif

HWY_INLINE void prefix(const Floats (&line)[kParts], float* HWY_RESTRICT sums) {
#if HWY_TARGET <= HWY_AVX3
  alignas(64) static constexpr std::int32_t one[kLine] = {0, 0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11};
  alignas(64) static constexpr std::int32_t two[kLine] = {0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 7};
  const F f;
  Floats v = add_within_fours(line[0]);
  v = hn::Add(v, hn::IfThenZeroElse(hn::FirstN(f, 4), hn::TableLookupLanes(v, hn::SetTableIndices(f, one))));
  v = hn::Add(v, hn::IfThenZeroElse(hn::FirstN(f, 8), hn::TableLookupLanes(v, hn::SetTableIndices(f, two))));
  hn::Store(v, f, sums);
#else
  add_within_fours(line, sums);
  const float first = sums[3], second = sums[7], third = sums[11], both = second + first;
  for (std::size_t i = 4; i < 8; ++i) sums[i] += first;
  for (std::size_t i = 8; i < 12; ++i) sums[i] = (sums[i] + second) + first;
  for (std::size_t i = 12; i < 16; ++i) sums[i] = (sums[i] + third) + both;
#endif
}

// How many of the 16 sums are at most u: the lane that u falls into, 16 if it is behind all.
HWY_INLINE std::uint32_t lane_of(const float* sums, float u) {
  std::size_t lanes = 0;
  for (std::size_t part = 0; part < kParts; ++part) lanes += hn::CountTrue(F(), hn::Le(load(sums + part * kLanes), hn::Set(F(), u)));
  return static_cast<std::uint32_t>(lanes);
}

class Run {
 public:
  Run(const Visit& visit, Laid& laid) : visit_(visit), laid_(laid), shift_(visit.block.shift), count_mask_((1u << shift_) - 1),
      beta_(static_cast<float>(visit.prior.beta)), beta_sum_(static_cast<float>(visit.beta_sum)), tables_(visit.block.tables.data()) {
    sums_[kLine - 1] = 0;
  }

  // Tokens `begin` to `end` - 1, all of one word, whose row is laid out.
  void draw(std::uint32_t begin, std::uint32_t end, Drawn& drawn) {
    Block& block = visit_.block;
    const std::uint32_t last = block.tokens() - 1;
    std::uint32_t same = UINT32_MAX;          // the line of the token that weights_ are of, while they hold
    Topic same_topic = 0;
    for (std::uint32_t token = begin; token < end; ++token) {
      const std::uint32_t* const soon = table_of(block.lines[std::min(token + kAhead, last)]);
      hwy::Prefetch(soon);
      for (std::uint32_t line = 1; line < std::min(lines_, kLinesAhead); ++line) hwy::Prefetch(soon + line * kLine);
      if (block.lines[token] != same || block.topics[token] != same_topic) {
        same = block.lines[token];
        same_topic = block.topics[token];
        if (same < block.first_long) {
          weigh<false>(table_of(same), same_topic);
        } else {
          weigh<true>(table_of(same), same_topic);
        }
      }
      if (const Topic topic = choose(random_bits(visit_.key, token)); topic != same_topic) {
        block.topics[token] = topic;
        move(topic);
        same = UINT32_MAX;
        ++drawn.changed;
      }
    }
    drawn.tokens += end - begin;
  }

  double row_sum = 0;     // of C_wk a_k of the row that is laid out
  bool long_row = false;  // it has groups

 private:
  static constexpr std::uint32_t kAhead = 16;  // tokens between asking for a table and reading it
  static constexpr std::uint32_t kLinesAhead = 8;  // of it, at most; as many as the last one had, for documents are ordered by length
  std::uint32_t* table_of(std::uint32_t line) const { return tables_ + std::size_t{line} * kLine; }

  // C_wk a_k of topics that follow each other.
  Floats row_weights(std::size_t topic) const {
    const auto counts = hn::Load(I(), reinterpret_cast<const std::int32_t*>(laid_.counts.data()) + topic);
    return hn::Mul(hn::ConvertTo(F(), counts), load(laid_.a.data() + topic));
  }

  // The document's term, C_dk psi_k, lane by lane over the lines of its table. A long document may have several entries of the token's topic, of
  // which one loses the token.
  template <bool long_document>
  void weigh(std::uint32_t* table, Topic own) {
    table_ = table;
    own_ = own;
    used_ = table[0] >> shift_;
    lines_ = (used_ + kLine) / kLine;
    const float inverse = laid_.inverse[own], growth = 1 / (1 - inverse);  // of 1 / (C_k + V beta) by the token's absence
    const auto others = static_cast<float>(laid_.counts[own] - 1);
    const float psi = (others + beta_) * (inverse * growth), a = laid_.a[own];
    own_row_ = others * (a * growth);
    row_change_ = own_row_ - (others + 1) * a;
    own_smoothing_ = beta_ * a * (growth - 1);

    const U u;
    const auto owns = hn::Set(u, own), mask = hn::Set(u, count_mask_), none = hn::Zero(u);
    const auto own_psi = hn::Set(F(), psi);
    bool taken_out = false;
    Floats sums[kParts];
    for (Floats& sum : sums) sum = hn::Zero(F());
    float* cumulative = laid_.cumulative.data();
    for (std::uint32_t line = 0; line < lines_; ++line) {
      for (std::size_t part = 0; part < kParts; ++part) {
        const std::size_t entry = line * kLine + part * kLanes;
        const auto entries = hn::Load(u, table + entry);
        const auto topics = hn::ShiftRightSame(entries, static_cast<int>(shift_));
        const auto counts = hn::And(entries, mask);
        const auto is_own = hn::And(hn::Eq(topics, owns), hn::Ne(counts, none));
        Floats weights = hn::GatherIndex(F(), laid_.psi.data(), hn::BitCast(I(), topics));
        weights = hn::IfThenElse(hn::RebindMask(F(), is_own), own_psi, weights);
        auto loses = is_own;
        if constexpr (long_document) {
          const auto first = static_cast<std::uint32_t>(taken_out ? -1 : hn::FindFirstTrue(u, is_own));
          loses = hn::Eq(hn::Iota(u, 0), hn::Set(u, first));
          taken_out |= !hn::AllFalse(u, is_own);
        }
        const auto left = hn::Sub(counts, hn::IfThenElseZero(loses, hn::Set(u, 1)));
        sums[part] = hn::Add(sums[part], hn::Mul(weights, hn::ConvertTo(F(), hn::BitCast(I(), left))));
        hn::Store(sums[part], F(), cumulative + entry);
      }
    }
    prefix(sums, sums_ + kLine);
  }

  // A topic from the weights of weigh(); at_ is its place in the table where that is known, else 0.
  Topic choose(std::uint64_t bits) {
    const double document = sums_[2 * kLine - 1], row = std::max(0.0, row_sum + row_change_);
    const double smoothing = visit_.prior.beta * laid_.a_sum;
    double u = unit(bits) * (document + row + smoothing + own_smoothing_);
    at_ = 0;
    if (u < document) return from_table(static_cast<float>(u));
    u -= document;
    if (u < row) return long_row ? from_groups(static_cast<float>(u)) : from_list(static_cast<float>(u));
    return u - row < smoothing ? from_all(bits) : own_;  // what the token's own absence adds to the third term
  }

  // By a_k. The alias table is of begin(): what it gives is taken as often as a_k has grown since, of the most that any has.
  Topic from_all(std::uint64_t bits) const {
    while (true) {
      bits = mixed(bits);
      auto topic = static_cast<Topic>((bits >> 32) * laid_.topics >> 32);
      if (static_cast<float>(bits & 0xFFFFFF) * 0x1p-24f >= laid_.stays[topic]) topic = laid_.other[topic];
      bits = mixed(bits);
      if (unit(bits) * laid_.growth < laid_.a[topic] * laid_.begun[topic]) return topic;
    }
  }

  Topic from_table(float u) {
    const std::uint32_t lane = std::min<std::uint32_t>(lane_of(sums_ + kLine, u), kLine - 1);
    const float rest = u - sums_[kLine - 1 + lane];
    std::uint32_t line = 0;
    for (std::uint32_t i = 0; i + 1 < lines_; ++i) line += laid_.cumulative[i * kLine + lane] <= rest;
    const std::uint32_t at = line * kLine + lane, entry = table_[at], count = entry & count_mask_;
    // A sum that was rounded up may end at an entry that has no weight.
    if (count == 0) return own_;
    at_ = at;
    return entry >> shift_;
  }

  Topic from_list(float u) {
    const std::vector<Topic>& list = laid_.list;  // zeros behind its end, where counts are cut off by `size`
    const std::size_t size = list.size();
    for (std::size_t begin = 0; begin < size; begin += kLine) {
      alignas(64) float weights[kLine] = {};
      for (std::size_t i = 0; i < std::min<std::size_t>(kLine, size - begin); ++i) weights[i] = row_weight(list[begin + i]);
      Floats line[kParts];
      for (std::size_t part = 0; part < kParts; ++part) line[part] = load(weights + part * kLanes);
      prefix(line, scan_ + kLine);
      if (const std::uint32_t lane = lane_of(scan_ + kLine, u); lane < kLine) return weights[lane] > 0 ? list[begin + lane] : own_;
      u -= scan_[2 * kLine - 1];
    }
    return own_;
  }
  float row_weight(Topic topic) const { return topic == own_ ? own_row_ : static_cast<float>(laid_.counts[topic]) * laid_.a[topic]; }

  Topic from_groups(float u) {
    const std::size_t groups = (laid_.topics + kGroup - 1) / kGroup;
    float& own_group = laid_.groups[own_ / kGroup];
    const float kept = own_group;
    own_group += row_change_;
    std::size_t group = groups;
    for (std::size_t begin = 0; begin < groups; begin += kLine) {
      Floats line[kParts];
      for (std::size_t part = 0; part < kParts; ++part) line[part] = load(laid_.groups.data() + begin + part * kLanes);
      prefix(line, scan_ + kLine);
      if (const std::uint32_t lane = lane_of(scan_ + kLine, u); lane < kLine) {
        u -= scan_[kLine - 1 + lane];
        group = begin + lane;
        break;
      }
      u -= scan_[2 * kLine - 1];
    }
    own_group = kept;
    return group < groups ? from_group(group, u) : own_;
  }

  Topic from_group(std::size_t group, float u) {
    const F f;
    alignas(64) float cumulative[kGroup];
    Floats sums[kParts];
    for (Floats& sum : sums) sum = hn::Zero(f);
    const auto own = hn::Set(U(), own_);
    for (std::size_t i = 0; i < kGroup; i += kLine) {
      for (std::size_t part = 0; part < kParts; ++part) {
        const std::size_t topic = group * kGroup + i + part * kLanes;
        const auto is_own = hn::RebindMask(f, hn::Eq(hn::Iota(U(), static_cast<std::uint32_t>(topic)), own));
        sums[part] = hn::Add(sums[part], hn::IfThenElse(is_own, hn::Set(f, own_row_), row_weights(topic)));
        hn::Store(sums[part], f, cumulative + i + part * kLanes);
      }
    }
    prefix(sums, scan_ + kLine);
    const std::uint32_t lane = std::min<std::uint32_t>(lane_of(scan_ + kLine, u), kLine - 1);
    const float rest = u - scan_[kLine - 1 + lane];
    std::uint32_t line = 0;
    for (std::size_t i = 0; i + kLine < kGroup; i += kLine) line += cumulative[i + lane] <= rest;
    const auto topic = static_cast<Topic>(group * kGroup + line * kLine + lane);
    return laid_.counts[topic] > (topic == own_ ? 1u : 0u) ? topic : own_;
  }

  // The token goes from own_ to `topic`, in all counts.
  void move(Topic topic) {
    const auto line = static_cast<std::uint32_t>((table_ - tables_) / kLine);
    if (line >= visit_.block.first_long) {
      DocumentCounts counts(visit_.block, line);
      counts.remove(own_);
      counts.add(topic);
    } else {
      move_in_table(topic);
    }
    visit_.totals.move(own_, topic);
    renew(own_, laid_.counts[own_] - 1);
    renew(topic, laid_.counts[topic] + 1);
    if (!laid_.listed[topic]) {
      laid_.listed[topic] = 1;
      laid_.list.push_back(topic);
    }
  }
  void move_in_table(Topic topic) {
    if (at_ == 0) at_ = find(topic);
    const std::uint32_t own_at = find(own_);
    const std::uint32_t left = table_[own_at] - 1;
    const bool empties = (left & count_mask_) == 0;
    if (at_ != 0) {
      ++table_[at_];
      table_[own_at] = left;
      if (empties) {  // the last entry takes its place
        table_[own_at] = table_[used_];
        table_[used_] = 0;
        table_[0] = (used_ - 1) << shift_;
      }
    } else if (empties) {
      table_[own_at] = topic << shift_ | 1;
    } else {
      table_[own_at] = left;
      table_[used_ + 1] = topic << shift_ | 1;
      table_[0] = (used_ + 1) << shift_;
    }
  }
  // What follows from a topic's total, which has changed, and from its count in the row.
  void renew(Topic topic, std::uint32_t count) {
    const float inverse = 1 / (static_cast<float>(visit_.totals.counts()[topic]) + beta_sum_);
    const float a = alpha_[topic] * inverse, before = laid_.a[topic];
    const float weight = static_cast<float>(count) * a, weight_before = static_cast<float>(laid_.counts[topic]) * before;
    laid_.inverse[topic] = inverse;
    laid_.a[topic] = a;
    laid_.psi[topic] = (static_cast<float>(count) + beta_) * inverse;
    laid_.counts[topic] = count;
    laid_.a_sum += static_cast<double>(a) - before;
    row_sum += static_cast<double>(weight) - weight_before;
    if (long_row) laid_.groups[topic / kGroup] += weight - weight_before;
    laid_.growth = std::max(laid_.growth, a * laid_.begun[topic]);
  }
  // Where the table has that topic; 0 if it has not.
  std::uint32_t find(Topic topic) const {
    const U u;
    const auto wanted = hn::Set(u, topic), mask = hn::Set(u, count_mask_), none = hn::Zero(u);
    for (std::uint32_t entry = 0; entry <= used_; entry += kLanes) {
      const auto entries = hn::Load(u, table_ + entry);
      const auto found = hn::And(hn::Eq(hn::ShiftRightSame(entries, static_cast<int>(shift_)), wanted), hn::Ne(hn::And(entries, mask), none));
      if (!hn::AllFalse(u, found)) return entry + static_cast<std::uint32_t>(hn::FindFirstTrue(u, found));
    }
    return 0;
  }

  const Visit& visit_;
  Laid& laid_;
  const unsigned shift_;
  const std::uint32_t count_mask_;
  const float beta_;
  const float beta_sum_;
  const float* const alpha_ = laid_.alpha.data();
  std::uint32_t* const tables_;
  // Of the token that was weighed.
  std::uint32_t* table_ = nullptr;
  Topic own_ = 0;
  std::uint32_t used_ = 0, lines_ = 0, at_ = 0;
  float own_row_ = 0;        // C_wk a_k of its topic, without it
  float row_change_ = 0;     // of row_sum, without it
  float own_smoothing_ = 0;
  alignas(64) float sums_[2 * kLine] = {};  // [16..31] the sums, [15] is 0
  alignas(64) float scan_[2 * kLine] = {};
};

}  // namespace HWY_NAMESPACE
}  // namespace shoal::learn::topic
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
