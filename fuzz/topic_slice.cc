// Any bytes as a slice of a topic model that another member hands on: refused, or rows that say what came. Run fuzz_topic_slice [corpus folder].
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/learn/topic/slice.h"

SHOAL_FUZZ(topic_slice, data, size) {
  using namespace shoal;
  try {
    const std::unique_ptr<learn::topic::Slice> slice = learn::topic::Slice::unpacked(std::as_bytes(std::span(data, size)));
    for (std::uint32_t place = 0; place < slice->words(); ++place) {
      for (const auto& [topic, count] : slice->row(place)) {
        if (topic >= slice->topics() || count == 0) std::abort();
      }
    }
    // What it says is a slice again, of the same rows.
    const Bytes packed = slice->packed();
    const std::unique_ptr<learn::topic::Slice> again = learn::topic::Slice::unpacked(packed);
    if (again->words() != slice->words()) std::abort();
    for (std::uint32_t place = 0; place < slice->words(); ++place) {
      const auto one = slice->row(place), other = again->row(place);
      if (!std::equal(one.begin(), one.end(), other.begin(), other.end())) std::abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
