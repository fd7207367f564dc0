#include "shoal/collective/happens_before.h"

#include <fmt/format.h>

#include <algorithm>

#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

constexpr std::size_t kWords = 8, kColumns = 64 * kWords;  // so many at once: a sweep stays in the processor's cache
constexpr std::uint64_t kMostLooks = 1ULL << 31;

void join(std::uint64_t* into, const std::uint64_t* from) {
  for (std::size_t w = 0; w < kWords; ++w) into[w] |= from[w];
}

}  // namespace

HappensBefore::HappensBefore(const Unrolled& program, const Histories& histories)
    : all_(program), histories_(histories), last_of_row_(program.rows(), kNone) {}

bool HappensBefore::same_chain(std::uint32_t a, std::uint32_t b) const {
  const Instance &one = all_.instances[a], &other = all_.instances[b];
  const Op &x = all_.op(a), &y = all_.op(b);
  if ((x.kind == OpKind::send) != (y.kind == OpKind::send) || receives(x) != receives(y)) return false;
  return one.partner == kNone || all_.place(one.partner).rank == all_.place(other.partner).rank;
}

void HappensBefore::gather_causes(std::span<const std::uint32_t> history) {
  causes_.assign(history.size(), {});
  afters_.clear();
  for (std::uint32_t k = 0; k < history.size(); ++k) {
    const std::uint32_t i = history[k];
    const Instance& at = all_.instances[i];
    Causes& causes = causes_[k];
    std::uint32_t& last = last_of_row_[all_.place(i).row];
    causes.in_lane = last;
    if (last != kNone && same_chain(history[last], i)) causes.in_chain = last;
    last = k;
    if (receives(all_.op(i))) causes.partner = histories_.place(at.partner);
    causes.first_after = static_cast<std::uint32_t>(afters_.size());
    for (std::size_t a = 0; a < all_.op(i).after.size(); ++a) {
      const std::uint32_t earlier = all_.after(i, a);
      if (earlier != kNone && by_slice(all_, earlier, i)) afters_.push_back(histories_.place(earlier));
    }
    causes.last_after = static_cast<std::uint32_t>(afters_.size());
  }
  for (const std::uint32_t i : history) last_of_row_[all_.place(i).row] = kNone;
}

// Answers those of `questions` (by `later`) whose `earlier` is one of `columns`, ascending and at most kColumns.
void HappensBefore::sweep(std::span<const std::uint32_t> history, const std::vector<std::uint32_t>& columns, std::vector<Question>& questions,
                          std::vector<Question>& open) {
  if (questions.empty()) return;
  std::sort(questions.begin(), questions.end(), [](const Question& a, const Question& b) { return a.later < b.later; });
  const std::uint32_t begin = columns.front(), end = std::min<std::uint32_t>(questions.back().later + 1, static_cast<std::uint32_t>(history.size()));
  begun_.assign((end - begin) * kWords, 0);
  done_.assign((end - begin) * kWords, 0);
  const auto row = [&](std::vector<std::uint64_t>& rows, std::uint32_t place) { return rows.data() + (place - begin) * kWords; };
  std::size_t next_column = 0, asked = 0;
  for (std::uint32_t k = begin; k < end; ++k) {
    const Causes& causes = causes_[k];
    std::uint64_t *begun = row(begun_, k), *done = row(done_, k);
    const auto take = [&](std::uint64_t* into, std::vector<std::uint64_t>& rows, std::uint32_t place) {
      if (place != kNone && place >= begin && place < k) join(into, row(rows, place));
    };
    take(begun, begun_, causes.in_lane);
    for (std::uint32_t a = causes.first_after; a < causes.last_after; ++a) take(begun, done_, afters_[a]);
    join(done, begun);
    take(done, begun_, causes.partner);
    for (; asked < questions.size() && questions[asked].later == k; ++asked) {
      const auto column = static_cast<std::size_t>(std::lower_bound(columns.begin(), columns.end(), questions[asked].earlier) - columns.begin());
      if ((done[column / 64] >> (column % 64) & 1) == 0) open.push_back(questions[asked]);
    }
    take(done, done_, causes.partner);
    take(done, done_, causes.in_chain);
    if (next_column < columns.size() && columns[next_column] == k) {
      done[next_column / 64] |= std::uint64_t{1} << next_column % 64;
      ++next_column;
    }
  }
}

std::vector<Question> HappensBefore::not_along(std::uint32_t chunk, std::vector<Question> questions) {
  const std::span<const std::uint32_t> history = histories_.of(chunk);
  std::vector<Question> open, of_block;
  gather_causes(history);
  std::erase_if(questions, [&](const Question& question) {
    if (question.earlier >= question.later) {  // here it is the other way round
      open.push_back(question);
      return true;
    }                                          // most wait for just that
    const Causes& later = causes_[question.later];
    return std::find(afters_.begin() + later.first_after, afters_.begin() + later.last_after, question.earlier) != afters_.begin() + later.last_after;
  });
  std::sort(questions.begin(), questions.end(), [](const Question& a, const Question& b) { return a.earlier < b.earlier; });
  std::vector<std::uint32_t> columns;
  for (const Question& question : questions) {
    if (columns.empty() || columns.back() != question.earlier) {
      if (columns.size() == kColumns) {
        sweep(history, columns, of_block, open);
        columns.clear();
        of_block.clear();
      }
      columns.push_back(question.earlier);
    }
    of_block.push_back(question);
  }
  sweep(history, columns, of_block, open);
  std::sort(open.begin(), open.end(), [](const Question& a, const Question& b) { return a.later < b.later; });
  return open;
}

bool HappensBefore::known(std::uint32_t earlier, std::uint32_t later) {
  seen_.resize(all_.instances.size() * 2);
  std::vector<std::size_t> reached;
  const auto reach = [&](std::uint32_t instance, bool done) {
    const std::size_t node = 2 * std::size_t{instance} + (done ? 1 : 0);
    if (!seen_[node]) reached.push_back(node);
    seen_[node] = true;
  };
  reach(later, false);
  if (receives(all_.op(later))) reach(all_.instances[later].partner, false);
  const std::size_t wanted = 2 * std::size_t{earlier} + 1;
  for (std::size_t k = 0; k < reached.size() && !seen_[wanted]; ++k) {
    const auto i = static_cast<std::uint32_t>(reached[k] / 2);
    const Iterated& at = all_.place(i);
    const std::uint32_t first = all_.row_begin[at.row];
    if (++looked_at_ > kMostLooks) {
      throw Error(Code::unsupported, "too many of its ops are ordered by ops on other chunks", fmt::format("program {}", all_.program.name));
    }
    if (reached[k] % 2 == 0) {
      if (i > first) reach(i - 1, false);
      for (std::size_t a = 0; a < at.op->after.size(); ++a) {
        if (const std::uint32_t waited = all_.after(i, a); waited != kNone) reach(waited, true);
      }
      continue;
    }
    reach(i, false);
    if (receives(*at.op)) reach(all_.instances[i].partner, true);
    for (std::uint32_t before = i; before > first; ++looked_at_) {
      if (!same_chain(--before, i)) continue;
      reach(before, true);
      break;
    }
  }
  const bool found = seen_[wanted];
  for (const std::size_t node : reached) seen_[node] = false;
  return found;
}

}  // namespace shoal::collective
