// The tokens of one word, drawn with the vectors of one instruction set. Included once per target (Highway), only by exact.cc.

#if defined(SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H
#undef SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H
#else
#define SHOAL_LEARN_TOPIC_EXACT_RUN_INL_H
#endif

#include <bit>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "shoal/learn/topic/by_topic_run-inl.h"
#include "shoal/learn/topic/counts.h"
#include "shoal/learn/topic/exact.h"
#include "shoal/learn/topic/lines-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::learn::topic {
namespace HWY_NAMESPACE {

class Run {
 public:
  Run(const Visit& visit, Laid& laid, const ByTopic& by_topic)
    : visit_(visit), laid_(laid), by_topic_(by_topic), sums_(laid, by_topic), shift_(visit.block.shift), count_mask_((1u << shift_) - 1),
      beta_(static_cast<float>(visit.prior.beta)), beta_sum_(static_cast<float>(visit.beta_sum)), tables_(visit.block.tables.data()) {}

  // Tokens `begin` to `end` - 1, all of one word, whose row is laid out.
  void draw(std::uint32_t begin, std::uint32_t end, Drawn& drawn) {
    Block& block = visit_.block;
    const std::uint32_t last = block.tokens() - 1;
    same_ = UINT32_MAX;
    sums_.forget();
    for (std::uint32_t token = begin; token < end; ++token) {
      const std::uint32_t* const soon = table_of(block.lines[std::min(token + kAhead, last)]);
      hwy::Prefetch(soon);
      for (std::uint32_t line = 1; line < std::min(lines_, kLinesAhead); ++line) hwy::Prefetch(soon + line * kLine);
      if (block.lines[token] != same_ || block.topics[token] != own_) {
        same_ = block.lines[token];
        weigh(same_, block.topics[token]);
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

  // What speaks for the token's own topic, and for others in its document.
  void weigh(std::uint32_t line, Topic own) {
    table_ = table_of(line);
    own_ = own;
    is_by_topic_ = by_topic_.has(line);
    const std::uint32_t own_count = is_by_topic_ ? weigh_by_topic() : weigh_entries();
    // Without the token 1 / (C_k + V beta) is greater. Of the third term, that is what it adds; the rest stands among all topics' (from_all).
    const Laid::Of& of = laid_.of[own];
    const auto others_here = static_cast<float>(static_cast<std::int32_t>(own_count) - 1);
    const auto others = static_cast<float>(of.count - 1);
    stays_ = (others_here * (others + beta_) + others * of.alpha) * of.without + beta_ * of.alpha * (of.without - of.inverse);
    own_row_ = (others + 1) * of.a();
  }
  // Both set what speaks for others in the document, C_dk psi_k, and say how many of its tokens have the token's own topic.
  std::uint32_t weigh_by_topic() {
    lines_ = 1;
    sums_.make(table_);
    document_ = sums_.others(own_);
    return sums_.count(own_);
  }
  // Lane by lane over the lines of the table.
  std::uint32_t weigh_entries() {
    const std::uint32_t* const table = table_;
    used_ = table[0] >> shift_;
    lines_ = (used_ + kLine) / kLine;
    const U u;
    const auto owns = hn::Set(u, own_), mask = hn::Set(u, count_mask_);
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
    document_ = sum_of(sums);
    return is_long() ? DocumentCounts(visit_.block, line_of_table()).of(own_) : table[own_at] & count_mask_;
  }

  // A topic from the weights of weigh(), the token's own first, for most tokens stay; at_ is its place in the table where that is known, else 0.
  Topic choose(std::uint64_t bits) {
    const double stays = stays_, document = document_, row = std::max(0.0, row_sum - own_row_);
    const double beside = stays + row + visit_.prior.beta * laid_.a_sum, part = unit(bits);
    // part < stays / (document + beside), so that the document's sum, which is known last, has only to be compared.
    if (document < stays * (1 / part) - beside) return own_;
    double u = part * (document + beside) - stays;
    at_ = 0;
    if (u < document) return is_by_topic_ ? sums_.draw(static_cast<float>(u), own_, scan_) : from_table(static_cast<float>(u));
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

  Topic from_table(float u) {
    Floats all[kParts];
    for (std::size_t part = 0; part < kParts; ++part) all[part] = load(laid_.cumulative.data() + (lines_ - 1) * kLine + part * kLanes);
    const std::uint32_t at = place_in(laid_.cumulative.data(), all, lines_, u, scan_), entry = table_[at];
    // A sum that was rounded up may end at an entry that has no weight.
    if ((entry & count_mask_) == 0) return own_;
    at_ = at;
    return entry >> shift_;
  }

  Topic from_list(float u) {
    same_ = UINT32_MAX;  // the document's sums are written over
    const auto lines = static_cast<std::uint32_t>((laid_.list.size() + kLine - 1) / kLine);
    const auto weights = [&](std::size_t at) HWY_ATTR { return load(laid_.weights.data() + at); };
    const std::uint32_t at = place_among(lines, laid_.place[own_] - 1, u, laid_.cumulative.data(), scan_, weights);
    return at < laid_.list.size() && laid_.weights[at] > 0 ? laid_.list[at] : own_;
  }

  Topic from_groups(float u) {
    const std::size_t groups = (laid_.topics + kGroup - 1) / kGroup;
    const std::size_t group = group_of(laid_.groups.data(), groups, own_ / kGroup, own_row_, scan_, u);
    if (group == groups) return own_;
    alignas(64) float cumulative[kGroup];
    const auto begin = static_cast<std::uint32_t>(group * kGroup);
    const auto weights = [&](std::size_t at) HWY_ATTR { return load(laid_.weights.data() + begin + at); };
    const auto topic = static_cast<Topic>(begin + place_among(kGroup / kLine, own_ - begin, u, cumulative, scan_, weights));
    return laid_.weights[topic] > 0 ? topic : own_;
  }

  // The token goes from own_ to `topic`, in all counts.
  void move(Topic topic) {
    if (is_by_topic_) {
      sums_.leave(own_, topic);
    } else if (is_long()) {
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
    if (is_by_topic_) sums_.arrive(own_, topic);
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
  const ByTopic& by_topic_;
  DocumentSums sums_;
  const unsigned shift_;
  const std::uint32_t count_mask_;
  const float beta_;
  const float beta_sum_;
  std::uint32_t* const tables_;
  // Of the token that was weighed.
  std::uint32_t same_ = UINT32_MAX;         // its line in the block, while laid_.cumulative has its document's sums
  std::uint32_t* table_ = nullptr;
  Topic own_ = 0;
  bool is_by_topic_ = false;                // its document's table is by topic; otherwise what follows is of it
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
