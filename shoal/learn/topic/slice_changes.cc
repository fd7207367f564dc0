#include "shoal/learn/topic/slice_changes.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/core/varint.h"

namespace shoal::learn::topic {
namespace {

enum ChangesForm : std::uint8_t { kChanges, kRows };

struct TopicChange {
  Topic topic;
  std::int64_t by;
};

// Small numbers of either sign are small ones without.
std::uint64_t zigzag(std::int64_t number) { return (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63); }
std::int64_t unzigzag(std::uint64_t number) { return static_cast<std::int64_t>(number >> 1) ^ -static_cast<std::int64_t>(number & 1); }

[[noreturn]] void refuse_changes() {
  throw Error(Code::mismatch, "what a member tells of its rows cannot be", "", "run the same program on all members");
}

class ChangesWriter {
 public:
  explicit ChangesWriter(ChangesForm form) { put(form); }
  void word(std::uint32_t place, std::size_t entries) {
    put(place - next_place_);
    put(entries);
    next_place_ = place + 1;
    next_topic_ = 0;
  }
  void entry(Topic topic, std::uint64_t number) {
    put(topic - next_topic_);
    put(number);
    next_topic_ = topic + 1;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void put(std::uint64_t number) {
    const std::size_t size = bytes_.size();
    bytes_.resize(size + kLongestVarint);
    bytes_.resize(static_cast<std::size_t>(put_varint(bytes_.data() + size, number) - bytes_.data()));
  }
  std::vector<std::byte> bytes_;
  std::uint32_t next_place_ = 0;
  Topic next_topic_ = 0;
};

class ChangesReader {
 public:
  explicit ChangesReader(std::span<const std::byte> bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  std::uint64_t number() {
    const auto number = take_varint(rest_);
    if (!number) refuse_changes();
    return *number;
  }
  // At a distance from `next` of those below `end`; then `next` is behind it.
  std::uint32_t ordinal(std::uint32_t& next, std::uint32_t end) {
    const std::uint64_t distance = number();
    if (next >= end || distance >= end - next) refuse_changes();
    next += static_cast<std::uint32_t>(distance) + 1;
    return next - 1;
  }
  std::size_t entries() {
    const std::uint64_t entries = number();
    if (entries > rest_.size() / 2) refuse_changes();
    return entries;
  }

 private:
  std::span<const std::byte> rest_;
};

void sort_into(std::span<const TopicCount> row, std::vector<TopicCount>& sorted) {
  sorted.assign(row.begin(), row.end());
  if (!std::ranges::is_sorted(sorted, {}, &TopicCount::topic)) std::ranges::sort(sorted, {}, &TopicCount::topic);
}

// Both by ascending topic.
void differ(std::span<const TopicCount> before, std::span<const TopicCount> now, std::vector<TopicChange>& changes) {
  changes.clear();
  auto was = before.begin();
  for (const auto& [topic, count] : now) {
    for (; was != before.end() && was->topic < topic; ++was) changes.push_back({was->topic, -std::int64_t{was->count}});
    const std::int64_t less = was != before.end() && was->topic == topic ? (was++)->count : 0;
    if (count != less) changes.push_back({topic, count - less});
  }
  for (; was != before.end(); ++was) changes.push_back({was->topic, -std::int64_t{was->count}});
}

}  // namespace

Bytes changes_between(const Slice& before, const Slice& now, bool or_rows) {
  ChangesWriter changes(kChanges), rows(kRows);
  std::vector<TopicCount> was, is;
  std::vector<TopicChange> changed;
  for (std::uint32_t place = 0; place < now.words(); ++place) {
    if (std::ranges::equal(before.row(place), now.row(place))) continue;
    sort_into(before.row(place), was);
    sort_into(now.row(place), is);
    differ(was, is, changed);
    if (changed.empty()) continue;
    changes.word(place, changed.size());
    for (const auto& [topic, by] : changed) changes.entry(topic, zigzag(by));
    if (!or_rows) continue;
    rows.word(place, is.size());
    for (const auto& [topic, count] : is) rows.entry(topic, count);
  }
  const std::vector<std::byte>& least = or_rows && rows.bytes().size() < changes.bytes().size() ? rows.bytes() : changes.bytes();
  const Bytes bytes(least.size());
  std::memcpy(bytes.data(), least.data(), least.size());
  return bytes;
}

void apply(std::span<const std::byte> changes, Topic topics, Slice& slice) {
  ChangesReader reader(changes);
  const std::uint64_t form = reader.number();
  if (form != kChanges && form != kRows) refuse_changes();
  std::vector<TopicCount> was, row;
  for (std::uint32_t next_place = 0; !reader.done();) {
    const std::uint32_t place = reader.ordinal(next_place, slice.words());
    was.clear();
    if (form == kChanges) sort_into(slice.row(place), was);
    row.clear();
    auto at = was.begin();
    Topic next_topic = 0;
    for (std::size_t entries = reader.entries(); entries != 0; --entries) {
      const Topic topic = reader.ordinal(next_topic, topics);
      const std::uint64_t number = reader.number();
      for (; at != was.end() && at->topic < topic; ++at) row.push_back(*at);
      const std::int64_t before = at != was.end() && at->topic == topic ? (at++)->count : 0;
      const std::int64_t by = form == kChanges ? unzigzag(number) : static_cast<std::int64_t>(number);
      if (by > UINT32_MAX || by < -std::int64_t{UINT32_MAX} || before + by < 0 || before + by > UINT32_MAX) refuse_changes();
      if (before + by != 0) row.push_back({topic, static_cast<std::uint32_t>(before + by)});
    }
    row.insert(row.end(), at, was.end());
    slice.store(place, row);
  }
}

}  // namespace shoal::learn::topic
