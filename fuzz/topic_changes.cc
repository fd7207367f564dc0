// Any bytes as what another member tells of its rows of a slice: refused, or rows whose topics there are, each once, with what was done to them; and
// what was done is told again the same. Run fuzz_topic_changes [corpus folder].
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/learn/topic/slice_changes.h"

SHOAL_FUZZ(topic_changes, data, size) {
  using namespace shoal;
  using namespace shoal::learn::topic;
  constexpr Topic topics = 9;
  const std::vector<std::vector<TopicCount>> rows{{}, {{0, 1}, {4, 300}, {8, 4294967295}}, {{7, 2}, {3, 5}}, {}, {{2, 1}}};
  Slice before(5), slice(5), again(5);
  for (std::uint32_t place = 0; place < rows.size(); ++place) {
    for (Slice* one : {&before, &slice, &again}) one->store(place, rows[place]);
  }
  try {
    apply(std::as_bytes(std::span(data, size)), topics, slice);
  } catch (const Error&) {
    return 0;
  }
  const auto sorted = [](std::span<const TopicCount> row) {
    std::vector<TopicCount> all(row.begin(), row.end());
    std::ranges::sort(all, {}, &TopicCount::topic);
    return all;
  };
  apply(changes_between(before, slice, true), topics, again);
  for (std::uint32_t place = 0; place < slice.words(); ++place) {
    const auto row = sorted(slice.row(place));
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i].topic >= topics || row[i].count == 0 || (i > 0 && row[i].topic == row[i - 1].topic)) std::abort();
    }
    if (row != sorted(again.row(place))) std::abort();
  }
  return 0;
}
