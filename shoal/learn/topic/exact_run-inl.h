// The tokens of one word, drawn with the vectors of one instruction set. Included once per target (Highway), only by exact.cc.
//
// Words: a line is 16 entries of a document's table, or 16 topics of a row; parts are the vectors that hold a line.

#if defined(SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H
#undef SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H
#else
#define SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H
#endif

#include <bit>
#include <cstring>

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

// The lane of that number of a line, none for other numbers. (Highway's Iota stores its numbers one by one and waits for them to load them.)
HWY_INLINE hn::Mask<F> is_lane(std::size_t part, std::uint32_t lane) {
  alignas(64) static constexpr std::uint32_t numbers[kLine] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return hn::RebindMask(F(), hn::Eq(hn::Load(U(), numbers + part * kLanes), hn::Set(U(), lane)));
}
// Lanes as bits, the first one lowest. (Highway's FindFirstTrue has a branch.)
HWY_INLINE std::uint32_t bits_of(hn::Mask<U> mask) {
  std::uint8_t bytes[8];
  hn::StoreMaskBits(U(), mask, bytes);
  if constexpr (kLanes <= 8) return bytes[0];
  std::uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

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
#elif HWY_TARGET == HWY_AVX2
  const Floats v = add_within_fours(line[0]), w = add_within_fours(line[1]);
  const Floats firsts = hn::Broadcast<3>(v), thirds = hn::Broadcast<3>(w);  // of each half: sums of its first four
  const Floats both = hn::Add(firsts, hn::ConcatLowerUpper(F(), firsts, firsts));
  hn::Store(hn::Add(v, hn::ConcatLowerLower(F(), firsts, hn::Zero(F()))), F(), sums);
  hn::Store(hn::Add(hn::Add(w, hn::ConcatLowerUpper(F(), thirds, firsts)), hn::ConcatUpperLower(F(), both, firsts)), F(), sums + kLanes);
#else
  add_within_fours(line, sums);
  const float first = sums[3], second = sums[7], third = sums[11], both = second + first;
  for (std::size_t i = 4; i < 8; ++i) sums[i] += first;
  for (std::size_t i = 8; i < 12; ++i) sums[i] = (sums[i] + second) + first;
  for (std::size_t i = 12; i < 16; ++i) sums[i] = (sums[i] + third) + both;
#endif
}

// Of all lanes, in the same order for all targets: the halves of a line are added up, then those of what that is.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE float sum_of_lanes(Floats v) { return hn::GetLane(v); }
#else
template <class Vector>
HWY_INLINE float sum_of_lanes(Vector v) {
  using D = hn::DFromV<Vector>;
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    return sum_of_lanes(hn::Add(hn::LowerHalf(hn::Half<D>(), v), hn::UpperHalf(hn::Half<D>(), v)));
  }
}
#endif
HWY_INLINE float sum_of(const Floats (&line)[kParts]) {
  Floats sums[kParts];
  for (std::size_t part = 0; part < kParts; ++part) sums[part] = line[part];
  for (std::size_t half = kParts / 2; half > 0; half /= 2) {
    for (std::size_t part = 0; part < half; ++part) sums[part] = hn::Add(sums[part], sums[half + part]);
  }
  return sum_of_lanes(sums[0]);
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
      beta_(static_cast<float>(visit.prior.beta)), beta_sum_(static_cast<float>(visit.beta_sum)), tables_(visit.block.tables.data()) {}

  // Tokens `begin` to `end` - 1, all of one word, whose row is laid out.
  void draw(std::uint32_t begin, std::uint32_t end, Drawn& drawn) {
    Block& block = visit_.block;
    const std::uint32_t last = block.tokens() - 1;
    same_ = UINT32_MAX;
    for (std::uint32_t token = begin; token < end; ++token) {
      const std::uint32_t* const soon = table_of(block.lines[std::min(token + kAhead, last)]);
      hwy::Prefetch(soon);
      for (std::uint32_t line = 1; line < std::min(lines_, kLinesAhead); ++line) hwy::Prefetch(soon + line * kLine);
      if (block.lines[token] != same_ || block.topics[token] != own_) {
        same_ = block.lines[token];
        weigh(table_of(same_), block.topics[token]);
      }
      if (const Topic topic = choose(random_bits(visit_.key, token)); topic != own_) {
        block.topics[token] = topic;
        move(topic);
        same_ = UINT32_MAX;
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

  std::uint32_t line_of_table() const { return static_cast<std::uint32_t>((table_ - tables_) / kLine); }
  bool is_long() const { return line_of_table() >= visit_.block.first_long; }

  // What speaks for the token's own topic, and lane by lane over the lines of the document's table what speaks for each other one: C_dk psi_k.
  void weigh(std::uint32_t* table, Topic own) {
    table_ = table;
    own_ = own;
    used_ = table[0] >> shift_;
    lines_ = (used_ + kLine) / kLine;
    const U u;
    const auto owns = hn::Set(u, own), mask = hn::Set(u, count_mask_);
    std::uint32_t own_at = 0;
    Floats sums[kParts];
    float* cumulative = laid_.cumulative.data();
    for (std::uint32_t line = 0; line < lines_; ++line) {
      std::uint32_t found = 0;
      for (std::size_t part = 0; part < kParts; ++part) {
        const std::size_t entry = line * kLine + part * kLanes;
        const auto entries = hn::Load(u, table + entry);
        const auto topics = hn::ShiftRightSame(entries, static_cast<int>(shift_));
        const auto counts = hn::And(entries, mask);
        const auto is_own = hn::And(hn::Eq(topics, owns), hn::Ne(counts, hn::Zero(u)));
        found |= bits_of(is_own) << (part * kLanes);
        const auto others = hn::IfThenZeroElse(is_own, counts);
        const Floats psi = hn::GatherIndex(F(), laid_.psi.data(), hn::BitCast(I(), topics));
        const Floats weights = hn::Mul(psi, hn::ConvertTo(F(), hn::BitCast(I(), others)));
        sums[part] = line == 0 ? weights : hn::Add(sums[part], weights);
        hn::Store(sums[part], F(), cumulative + entry);
      }
      own_at = found != 0 ? line * kLine + static_cast<std::uint32_t>(std::countr_zero(found)) : own_at;
    }
    own_at_ = own_at;
    const std::uint32_t own_count = is_long() ? DocumentCounts(visit_.block, line_of_table()).of(own) : table[own_at] & count_mask_;
    document_ = sum_of(sums);
    // Without the token 1 / (C_k + V beta) is greater. Of the third term, that is what it adds; the rest stands among all topics' (from_all).
    const Laid::Of& of = laid_.of[own];
    const auto others_here = static_cast<float>(static_cast<std::int32_t>(own_count) - 1);
    const auto others = static_cast<float>(of.count - 1);
    stays_ = (others_here * (others + beta_) + others * of.alpha) * of.without + beta_ * of.alpha * (of.without - of.inverse);
    own_row_ = (others + 1) * of.a();
  }

  // A topic from the weights of weigh(), the token's own first, for most tokens stay; at_ is its place in the table where that is known, else 0.
  Topic choose(std::uint64_t bits) {
    const double stays = stays_, document = document_, row = std::max(0.0, row_sum - own_row_);
    const double beside = stays + row + visit_.prior.beta * laid_.a_sum, part = unit(bits);
    // part < stays / (document + beside), so that the document's sum, which is known last, has only to be compared.
    if (document < stays * (1 / part) - beside) return own_;
    double u = part * (document + beside) - stays;
    at_ = 0;
    if (u < document) return from_table(static_cast<float>(u));
    u -= document;
    if (u < row) return long_row ? from_groups(static_cast<float>(u)) : from_list(static_cast<float>(u));
    return from_all(bits);
  }

  // By a_k. The alias table is of begin(): what it gives is taken as often as a_k has grown since, of the most that any has.
  Topic from_all(std::uint64_t bits) const {
    while (true) {
      bits = mixed(bits);
      auto topic = static_cast<Topic>((bits >> 32) * laid_.topics >> 32);
      if (static_cast<float>(bits & 0xFFFFFF) * 0x1p-24f >= laid_.stays[topic]) topic = laid_.other[topic];
      bits = mixed(bits);
      if (unit(bits) * laid_.growth < laid_.of[topic].a() * laid_.begun[topic]) return topic;
    }
  }

  // Where u falls among so many lines, whose sums lane by lane are in laid_.cumulative; those of the last one are of all.
  std::uint32_t place_in(std::uint32_t lines, float u) {
    Floats all[kParts];
    for (std::size_t part = 0; part < kParts; ++part) all[part] = load(laid_.cumulative.data() + (lines - 1) * kLine + part * kLanes);
    prefix(all, scan_ + kLine);
    const std::uint32_t lane = std::min<std::uint32_t>(lane_of(scan_ + kLine, u), kLine - 1);
    const float rest = u - scan_[kLine - 1 + lane];
    std::uint32_t line = 0;
    for (std::uint32_t i = 0; i + 1 < lines; ++i) line += laid_.cumulative[i * kLine + lane] <= rest;
    return line * kLine + lane;
  }

  Topic from_table(float u) {
    const std::uint32_t at = place_in(lines_, u), entry = table_[at];
    // A sum that was rounded up may end at an entry that has no weight.
    if ((entry & count_mask_) == 0) return own_;
    at_ = at;
    return entry >> shift_;
  }

  Topic from_list(float u) {
    const std::uint32_t own = laid_.place[own_] - 1;
    same_ = UINT32_MAX;  // the document's sums are written over
    const auto lines = static_cast<std::uint32_t>((laid_.list.size() + kLine - 1) / kLine);
    float* cumulative = laid_.cumulative.data();
    Floats sums[kParts];
    for (Floats& sum : sums) sum = hn::Zero(F());
    for (std::uint32_t line = 0; line < lines; ++line) {
      for (std::size_t part = 0; part < kParts; ++part) {
        const std::size_t at = line * kLine + part * kLanes;
        sums[part] = hn::Add(sums[part], hn::IfThenZeroElse(is_lane(part, own - line * kLine), load(laid_.weights.data() + at)));
        hn::Store(sums[part], F(), cumulative + at);
      }
    }
    const std::uint32_t at = place_in(lines, u);
    return at < laid_.list.size() && laid_.weights[at] > 0 ? laid_.list[at] : own_;
  }

  Topic from_groups(float u) {
    const std::size_t groups = (laid_.topics + kGroup - 1) / kGroup;
    std::size_t group = groups;
    for (std::size_t begin = 0; begin < groups; begin += kLine) {
      Floats line[kParts];
      for (std::size_t part = 0; part < kParts; ++part) {  // without its own topic
        const auto is_own = is_lane(part, own_ / kGroup - static_cast<std::uint32_t>(begin));
        line[part] = hn::Sub(load(laid_.groups.data() + begin + part * kLanes), hn::IfThenElseZero(is_own, hn::Set(F(), own_row_)));
      }
      prefix(line, scan_ + kLine);
      if (const std::uint32_t lane = lane_of(scan_ + kLine, u); lane < kLine) {
        u -= scan_[kLine - 1 + lane];
        group = begin + lane;
        break;
      }
      u -= scan_[2 * kLine - 1];
    }
    return group < groups ? from_group(group, u) : own_;
  }

  Topic from_group(std::size_t group, float u) {
    const F f;
    const auto own = own_ - static_cast<std::uint32_t>(group * kGroup);
    alignas(64) float cumulative[kGroup];
    Floats sums[kParts];
    for (Floats& sum : sums) sum = hn::Zero(f);
    for (std::size_t i = 0; i < kGroup; i += kLine) {
      for (std::size_t part = 0; part < kParts; ++part) {
        const std::size_t topic = group * kGroup + i + part * kLanes;
        sums[part] = hn::Add(sums[part], hn::IfThenZeroElse(is_lane(part, own - static_cast<std::uint32_t>(i)), load(laid_.weights.data() + topic)));
        hn::Store(sums[part], f, cumulative + i + part * kLanes);
      }
    }
    prefix(sums, scan_ + kLine);
    const std::uint32_t lane = std::min<std::uint32_t>(lane_of(scan_ + kLine, u), kLine - 1);
    const float rest = u - scan_[kLine - 1 + lane];
    std::uint32_t line = 0;
    for (std::size_t i = 0; i + kLine < kGroup; i += kLine) line += cumulative[i + lane] <= rest;
    const auto topic = static_cast<Topic>(group * kGroup + line * kLine + lane);
    return laid_.weights[topic] > 0 ? topic : own_;
  }

  // The token goes from own_ to `topic`, in all counts.
  void move(Topic topic) {
    if (is_long()) {
      DocumentCounts counts(visit_.block, line_of_table());
      counts.remove(own_);
      counts.add(topic);
    } else {
      move_in_table(topic);
    }
    visit_.totals.move(own_, topic);
    if (laid_.place[topic] == 0) {
      laid_.list.push_back(topic);
      laid_.place[topic] = static_cast<std::uint32_t>(laid_.list.size());
    }
    // What was without one token is with all that there are now, and the other way round.
    const auto totals = visit_.totals.counts();
    const Laid::Of &from = laid_.of[own_], &to = laid_.of[topic];
    renew(own_, -1, from.without, Laid::inverse_without(totals[own_], beta_sum_));
    renew(topic, 1, Laid::inverse_of(totals[topic], beta_sum_), to.inverse);
    laid_.growth = std::max(laid_.growth, from.a() * laid_.begun[own_]);
  }
  // Without branches, which nobody could foretell.
  void move_in_table(Topic topic) {
    if (at_ == 0) at_ = find(topic);
    const std::uint32_t own_at = own_at_, left = table_[own_at] - 1;
    const bool has = at_ != 0, empties = (left & count_mask_) == 0;
    table_[own_at] = left;
    const std::uint32_t to = has ? at_ : empties ? own_at : used_ + 1;
    table_[to] = (has ? table_[to] : topic << shift_) + 1;
    // An entry that is empty and was not taken goes: the last one takes its place. If none goes, the first one, which is written below, is cleared.
    const bool goes = has && empties;
    const std::uint32_t last = goes ? used_ : own_at;
    table_[own_at] = table_[last];
    table_[goes ? last : 0] = 0;
    table_[0] = (used_ + (!has && !empties) - goes) << shift_;
  }
  // What follows from a topic's total, which has changed, and from its count in the row, which changes by `more`.
  void renew(Topic topic, std::int32_t more, float inverse, float without) {
    Laid::Of& of = laid_.of[topic];
    const float before = of.a(), weight_before = static_cast<float>(of.count) * before;
    of.count += static_cast<std::uint32_t>(more);
    of.inverse = inverse;
    of.without = without;
    const float count = static_cast<float>(of.count), a = of.a(), weight = count * a;
    laid_.psi[topic] = (count + beta_) * inverse;
    laid_.a_sum += static_cast<double>(a) - before;
    row_sum += static_cast<double>(weight) - weight_before;
    laid_.weights[long_row ? topic : laid_.place[topic] - 1] = weight;
    if (long_row) laid_.groups[topic / kGroup] += weight - weight_before;
  }
  // Where the table has that topic; 0 if it has not. Not of long documents.
  std::uint32_t find(Topic topic) const {
    const U u;
    const auto wanted = hn::Set(u, topic), mask = hn::Set(u, count_mask_), none = hn::Zero(u);
    std::uint32_t at = 0;
    for (std::uint32_t line = 0; line < lines_; ++line) {
      std::uint32_t found = 0;
      for (std::size_t part = 0; part < kParts; ++part) {
        const auto entries = hn::Load(u, table_ + line * kLine + part * kLanes);
        const auto is_wanted = hn::Eq(hn::ShiftRightSame(entries, static_cast<int>(shift_)), wanted);
        found |= bits_of(hn::And(is_wanted, hn::Ne(hn::And(entries, mask), none))) << (part * kLanes);
      }
      at = found != 0 ? line * kLine + static_cast<std::uint32_t>(std::countr_zero(found)) : at;
    }
    return at;
  }

  const Visit& visit_;
  Laid& laid_;
  const unsigned shift_;
  const std::uint32_t count_mask_;
  const float beta_;
  const float beta_sum_;
  std::uint32_t* const tables_;
  // Of the token that was weighed.
  std::uint32_t same_ = UINT32_MAX;         // its line in the block, while laid_.cumulative has its document's sums
  std::uint32_t* table_ = nullptr;
  Topic own_ = 0;
  std::uint32_t used_ = 0, lines_ = 0;
  std::uint32_t own_at_ = 0;                // where the table has its topic; a long document may have it elsewhere, too
  std::uint32_t at_ = 0;                    // where it has the topic that was chosen, if that is known, else 0
  float stays_ = 0;                         // what speaks for its topic
  float own_row_ = 0;                       // C_wk a_k of its topic, with it
  float document_ = 0;                      // what speaks for others in the document; laid_.cumulative has it by lanes
  alignas(64) float scan_[2 * kLine] = {};  // behind [15], which is 0: sums up to each lane
};

}  // namespace HWY_NAMESPACE
}  // namespace shoal::learn::topic
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
