#include "shoal/learn/topic/occurrences.h"

#include <algorithm>

namespace shoal::learn::topic {

Occurrences::Occurrences(std::span<const std::vector<std::uint32_t>> topics, std::uint32_t vocabulary, unsigned window)
    : window_(window), number_(vocabulary, kNone) {
  std::uint32_t numbers = 0;
  for (const auto& words : topics) {
    for (const std::uint32_t word : words) {
      if (number_[word] == kNone) number_[word] = numbers++;
    }
  }
  singles_.resize(numbers);
  partners_.resize(numbers);
  place_.assign(numbers, kNone);
  for (const auto& words : topics) {
    for (const std::uint32_t a : words) {
      for (const std::uint32_t b : words) {
        if (number_[a] < number_[b]) partners_[number_[a]].push_back({number_[b], 0});
      }
    }
  }
  for (auto& partners : partners_) {
    std::sort(partners.begin(), partners.end(), [](const Partner& a, const Partner& b) { return a.number < b.number; });
    partners.erase(std::unique(partners.begin(), partners.end(), [](const Partner& a, const Partner& b) { return a.number == b.number; }),
                   partners.end());
  }
}

void Occurrences::add(const text::Documents& documents, std::size_t begin, std::size_t end) {
  for (std::size_t d = begin; d < end; ++d) add(documents[d]);
}

void Occurrences::add(std::span<const std::uint32_t> document) {
  positions_.clear();
  for (std::size_t i = 0; i < document.size(); ++i) {
    const std::uint32_t number = document[i] < number_.size() ? number_[document[i]] : kNone;
    if (number != kNone) positions_.emplace_back(number, i);
  }
  std::sort(positions_.begin(), positions_.end());
  const std::uint64_t windows = window_ == 0 || document.size() <= window_ ? 1 : document.size() - window_ + 1;
  windows_ += windows;
  find_intervals(document.size(), windows);

  for (const Present& a : present_) {
    for (std::size_t i = a.begin; i < a.end; ++i) singles_[a.number] += intervals_[i].end - intervals_[i].begin;
    for (Partner& partner : partners_[a.number]) {
      if (place_[partner.number] == kNone) continue;
      const Present& b = present_[place_[partner.number]];
      for (std::size_t i = a.begin, j = b.begin; i < a.end && j < b.end;) {
        const std::uint64_t first = std::max(intervals_[i].begin, intervals_[j].begin), last = std::min(intervals_[i].end, intervals_[j].end);
        if (first < last) partner.together += last - first;
        intervals_[i].end < intervals_[j].end ? ++i : ++j;
      }
    }
  }
  for (const Present& a : present_) place_[a.number] = kNone;
}

// Window s holds positions s to s + width - 1: position p enters with window p - width + 1, or is there in the first, and is gone from window p + 1.
void Occurrences::find_intervals(std::size_t tokens, std::uint64_t windows) {
  const std::uint64_t width = windows == 1 ? tokens : window_;
  intervals_.clear();
  present_.clear();
  for (std::size_t i = 0; i < positions_.size();) {
    const std::uint32_t number = positions_[i].first;
    const std::size_t first = intervals_.size();
    std::size_t leaving = i;
    const auto leave = [&](std::uint64_t before) {  // all that are gone from window `before`
      for (; leaving < i && positions_[leaving].second + 1 <= before; ++leaving) {
        intervals_.back().end = std::min(intervals_.back().end, positions_[leaving].second + 1);
      }
    };
    for (; i < positions_.size() && positions_[i].first == number; ++i) {
      const std::uint64_t at = positions_[i].second, begin = at + 1 < width ? 0 : at + 1 - width;
      leave(begin);
      if (intervals_.size() == first || intervals_.back().end <= begin) intervals_.push_back({begin, windows});
    }
    leave(windows);
    place_[number] = static_cast<std::uint32_t>(present_.size());
    present_.push_back({number, first, intervals_.size()});
  }
}

Occurrences& Occurrences::operator+=(const Occurrences& other) {
  windows_ += other.windows_;
  for (std::size_t i = 0; i < singles_.size(); ++i) {
    singles_[i] += other.singles_[i];
    for (std::size_t j = 0; j < partners_[i].size(); ++j) partners_[i][j].together += other.partners_[i][j].together;
  }
  return *this;
}

std::uint64_t Occurrences::of(std::uint32_t a, std::uint32_t b) const {
  if (a == b) return of(a);
  const auto [smaller, larger] = std::minmax(number_[a], number_[b]);
  const std::vector<Partner>& partners = partners_[smaller];
  const auto before = [](const Partner& partner, std::uint32_t number) { return partner.number < number; };
  return std::lower_bound(partners.begin(), partners.end(), larger, before)->together;
}

}  // namespace shoal::learn::topic
