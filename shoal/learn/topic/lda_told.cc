// What of a member's rows changed in a sweep, told to all others (parallel.h): of each slice what its rows gained and what they lost.
#include <algorithm>
#include <cstring>
#include <memory>

#include "shoal/core/error.h"
#include "shoal/learn/topic/lda_worker.h"

namespace shoal::learn::topic {
namespace {

[[noreturn]] void refuse() { throw Error(Code::mismatch, "what a member tells of its rows cannot be", "", "run the same program on all members"); }

void append(std::vector<std::byte>& to, const Slice& slice) {
  const Bytes bytes = slice.packed();
  const std::uint64_t size = bytes.size();
  const auto* const head = reinterpret_cast<const std::byte*>(&size);
  to.insert(to.end(), head, head + sizeof(size));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

std::unique_ptr<Slice> next(std::span<const std::byte>& rest, std::uint32_t words, Topic topics) {
  std::uint64_t size = 0;
  if (rest.size() < sizeof(size)) refuse();
  std::memcpy(&size, rest.data(), sizeof(size));
  rest = rest.subspan(sizeof(size));
  if (size > rest.size()) refuse();
  std::unique_ptr<Slice> slice = Slice::unpacked(rest.first(size));
  rest = rest.subspan(size);
  if (slice->words() != words || slice->topics() > topics) refuse();
  return slice;
}

// Counts of one row by topic, while rows are taken from each other.
class Changes {
 public:
  explicit Changes(Topic topics) : counts_(topics) {}
  void add(std::span<const TopicCount> row, std::int64_t times) {
    for (const auto& [topic, count] : row) {
      listed_.push_back(topic);
      counts_[topic] += times * count;
    }
  }
  // What is above 0, and what is below, topics ascending; then there is nothing.
  void take(std::vector<TopicCount>& above, std::vector<TopicCount>& below) {
    above.clear();
    below.clear();
    std::ranges::sort(listed_);
    listed_.erase(std::ranges::unique(listed_).begin(), listed_.end());
    for (const Topic topic : listed_) {
      const std::int64_t count = std::exchange(counts_[topic], 0);
      if (count != 0) (count > 0 ? above : below).push_back({topic, static_cast<std::uint32_t>(std::abs(count))});
    }
    listed_.clear();
  }

 private:
  std::vector<std::int64_t> counts_;
  std::vector<Topic> listed_;
};

}  // namespace

void Lda::each_own_slice(const std::function<void(std::uint32_t number, const Slice& slice)>& visit) {
  if (!tells() || transport_.rank() == 0) each_slice(visit);  // all members have the same ones
}

void Lda::tell_changes() {
  if (!tells()) return;
  if (told_.empty()) {
    for (std::uint32_t number = 0; number < slicing_.slices(); ++number) told_.emplace_back(slicing_.size(number));
  }
  Changes changes(topics_);
  std::vector<TopicCount> above, below;
  std::vector<std::vector<std::byte>> own(slicing_.slices());
  each_slice([&](std::uint32_t number, Slice& slice) {
    Slice gained(slice.words()), lost(slice.words());
    for (std::uint32_t place = 0; place < slice.words(); ++place) {
      changes.add(slice.row(place), 1);
      changes.add(told_[number].row(place), -1);
      changes.take(above, below);
      gained.store(place, above);
      lost.store(place, below);
    }
    append(own[number], gained);
    append(own[number], lost);
  });
  std::size_t size = 0;
  for (const auto& slice : own) size += slice.size();
  Bytes bytes(size);
  for (std::size_t at = 0; const auto& slice : own) {
    std::ranges::copy(slice, bytes.data() + at);
    at += slice.size();
  }
  own = {};
  const std::vector<Bytes> all = gather_.on_all(std::move(bytes), "what changed in the rows");

  std::vector<std::span<const std::byte>> rest(all.begin(), all.end());
  for (std::uint32_t number = 0; number < slicing_.slices(); ++number) {
    const std::uint32_t words = slicing_.size(number);
    std::vector<std::unique_ptr<Slice>> gained, lost;
    for (auto& of_member : rest) {
      gained.push_back(next(of_member, words, topics_));
      lost.push_back(next(of_member, words, topics_));
    }
    for (std::uint32_t place = 0; place < words; ++place) {
      changes.add(told_[number].row(place), 1);
      for (const auto& slice : gained) changes.add(slice->row(place), 1);
      for (const auto& slice : lost) changes.add(slice->row(place), -1);
      changes.take(above, below);
      if (!below.empty()) refuse();
      told_[number].store(place, above);
    }
  }
  each_slice([&](std::uint32_t number, Slice& slice) {
    for (std::uint32_t place = 0; place < slice.words(); ++place) slice.store(place, told_[number].row(place));
  });
}

}  // namespace shoal::learn::topic
