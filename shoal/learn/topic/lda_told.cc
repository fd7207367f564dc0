// What of a member's rows changed in a sweep, told to all others (parallel.h): of each slice what its rows gained and what they lost.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/learn/topic/lda_worker.h"
#include "shoal/learn/topic/packed_slices.h"

namespace shoal::learn::topic {
namespace {

[[noreturn]] void refuse() { throw Error(Code::mismatch, "what a member tells of its rows cannot be", "", "run the same program on all members"); }

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
  PackedSlices own;
  each_slice([&](std::uint32_t number, Slice& slice) {
    Slice gained(slice.words()), lost(slice.words());
    for (std::uint32_t place = 0; place < slice.words(); ++place) {
      changes.add(slice.row(place), 1);
      changes.add(told_[number].row(place), -1);
      changes.take(above, below);
      gained.store(place, above);
      lost.store(place, below);
    }
    own.append(number, gained);
    own.append(number, lost);
  });
  const std::vector<Bytes> all = gather_.on_all(own.take(), "what changed in the rows");

  // All members have gone through their slices in the same order.
  std::vector<SliceReader> readers;
  for (const Bytes& of_member : all) readers.emplace_back(of_member, slicing_, topics_);
  for (std::uint32_t slice = 0; slice < slicing_.slices(); ++slice) {
    std::vector<std::unique_ptr<Slice>> gained, lost;
    std::uint32_t number = 0;
    for (SliceReader& reader : readers) {
      std::uint32_t of_gained = 0, of_lost = 0;
      gained.push_back(reader.next(of_gained));
      lost.push_back(reader.next(of_lost));
      if (gained.size() == 1) number = of_gained;
      if (of_gained != number || of_lost != number) refuse();
    }
    for (std::uint32_t place = 0; place < slicing_.size(number); ++place) {
      changes.add(told_[number].row(place), 1);
      for (const auto& more : gained) changes.add(more->row(place), 1);
      for (const auto& less : lost) changes.add(less->row(place), -1);
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
