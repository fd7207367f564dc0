#include "shoal/learn/topic/packed_slices.h"

#include <algorithm>
#include <cstring>

#include "shoal/core/error.h"

namespace shoal::learn::topic {
namespace {

struct SliceHead {
  std::uint64_t number, size;
};

[[noreturn]] void refuse(const char* what) { throw Error(Code::mismatch, what, "", "run the same program on all members"); }

}  // namespace

void PackedSlices::append(std::uint32_t number, const Slice& slice) {
  const Bytes packed = slice.packed();
  const SliceHead head{number, packed.size()};
  const auto begin = std::as_bytes(std::span(&head, 1));
  bytes_.insert(bytes_.end(), begin.begin(), begin.end());
  bytes_.insert(bytes_.end(), packed.begin(), packed.end());
}

Bytes PackedSlices::take() {
  Bytes all(bytes_.size());
  std::ranges::copy(bytes_, all.begin());
  bytes_ = {};
  return all;
}

std::unique_ptr<Slice> SliceReader::next(std::uint32_t& number) {
  SliceHead head;
  if (rest_.size() < sizeof(head)) refuse("a part of the model is cut short");
  std::memcpy(&head, rest_.data(), sizeof(head));
  rest_ = rest_.subspan(sizeof(head));
  if (head.number >= slicing_.slices() || head.size > rest_.size()) refuse("a part of the model is none");
  number = static_cast<std::uint32_t>(head.number);
  std::unique_ptr<Slice> slice = Slice::unpacked(rest_.first(head.size));
  if (slice->words() != slicing_.size(number) || slice->topics() > topics_) refuse("a part of the model is of other words");
  rest_ = rest_.subspan(head.size);
  return slice;
}

}  // namespace shoal::learn::topic
