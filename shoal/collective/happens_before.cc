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

void HappensBefore::look_at(std::uint32_t chunk) {
  history_ = histories_.of(chunk);
  if (history_.size() > kMaxOfChunk) {
    throw Error(Code::unsupported, fmt::format("more than {} ops on chunk {}", kMaxOfChunk, chunk), fmt::format("program {}", all_.program.name));
  }
  causes_.assign(history_.size(), {});
  afters_.clear();
  for (std::uint32_t k = 0; k < history_.size(); ++k) {
    const std::uint32_t i = history_[k];
    const Instance& at = all_.instances[i];
    Causes& causes = causes_[k];
    std::uint32_t& last = last_of_row_[all_.place(i).row];
    causes.in_lane = last;
    if (last != kNone && same_chain(history_[last], i)) causes.in_chain = last;
    last = k;
    if (receives(all_.op(i))) causes.partner = histories_.place(at.partner);
    causes.first_after = static_cast<std::uint32_t>(afters_.size());
    for (std::size_t a = 0; a < all_.op(i).after.size(); ++a) {
      const std::uint32_t earlier = all_.after(i, a);
      if (earlier != kNone && by_slice(all_, earlier, i)) afters_.push_back(histories_.place(earlier));
    }
    causes.last_after = static_cast<std::uint32_t>(afters_.size());
  }
  for (const std::uint32_t i : history_) last_of_row_[all_.place(i).row] = kNone;
}

// Of `questions` whose `earlier` is one of `columns`, ascending and at most kColumns.
std::optional<Question> HappensBefore::sweep(const std::vector<std::uint32_t>& columns, std::vector<Question>& questions) {
  if (questions.empty()) return {};
  std::sort(questions.begin(), questions.end(), [](const Question& a, const Question& b) { return a.later < b.later; });
  const std::uint32_t begin = columns.front(), end = questions.back().later + 1;
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
      const bool along = (done[column / 64] >> (column % 64) & 1) != 0;
      if (!along && !known_by_any_way(history_[questions[asked].earlier], history_[k])) return questions[asked];
    }
    take(done, done_, causes.partner);
    take(done, done_, causes.in_chain);
    if (next_column < columns.size() && columns[next_column] == k) {
      done[next_column / 64] |= std::uint64_t{1} << next_column % 64;
      ++next_column;
    }
  }
  return {};
}

std::optional<Question> HappensBefore::refuted(std::vector<Question> questions) {
  for (const Question& question : questions) {
    if (question.earlier >= question.later) return question;  // it was the other way round
  }
  std::erase_if(questions, [&](const Question& question) {    // most wait for just that
    const auto begin = afters_.begin() + causes_[question.later].first_after, end = afters_.begin() + causes_[question.later].last_after;
    return std::find(begin, end, question.earlier) != end;
  });
  std::sort(questions.begin(), questions.end(), [](const Question& a, const Question& b) { return a.earlier < b.earlier; });
  std::vector<Question> of_block;
  std::vector<std::uint32_t> columns;
  for (const Question& question : questions) {
    if (columns.empty() || columns.back() != question.earlier) {
      if (columns.size() == kColumns) {
        if (const auto no = sweep(columns, of_block)) return no;
        columns.clear();
        of_block.clear();
      }
      columns.push_back(question.earlier);
    }
    of_block.push_back(question);
  }
  return sweep(columns, of_block);
}

bool HappensBefore::known_by_any_way(std::uint32_t earlier, std::uint32_t later) {
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
