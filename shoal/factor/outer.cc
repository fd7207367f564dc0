#include "shoal/factor/outer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <ranges>
#include <string>

#include "shoal/core/error.h"
#include "shoal/core/varint.h"

namespace shoal::factor {
namespace {

struct OuterHead {
  std::uint32_t vectors = 0, rows = 0, entries = 0;
};

std::size_t index_bytes(std::uint32_t vectors) { return vectors <= 1u << 8 ? 1 : vectors <= 1u << 16 ? 2 : 4; }

constexpr auto all_finite = [](const auto& numbers) { return std::ranges::all_of(numbers, [](auto number) { return std::isfinite(number); }); };

[[noreturn]] void refuse(const std::string& what) { throw Error(Code::mismatch, what, "factors", "run the same program on all members"); }

// Bytes from outside, taken from the front.
class Taken {
 public:
  explicit Taken(std::span<const std::byte> from) : rest_(from) {}
  std::span<const std::byte> bytes(std::size_t count) {
    if (count > rest_.size()) refuse("factors end early");
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::uint64_t number() {
    if (const auto number = take_varint(rest_)) return *number;
    if (rest_.size() < kLongestVarint) refuse("factors end early");
    refuse("a number of factors is too long");
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

template <class T>
std::span<T> Outer<T>::new_vector() {
  vectors_.resize(vectors_.size() + width_);
  return std::span(vectors_).last(width_);
}

template <class T>
void Outer<T>::seal() {
  if (!all_finite(vectors_) || !all_finite(open_ | std::views::transform(&Open::coefficient))) {
    throw Error(Code::invalid_argument, "a factor has a number that is not finite", "factors",
                "nothing of this update was taken; look at the step size and the data");
  }
  std::vector<std::uint32_t> order(rows_.size()), place(rows_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](std::uint32_t at) { return rows_[at]; });
  std::vector<Key> ascending(rows_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    ascending[i] = rows_[order[i]];
  }
  rows_ = std::move(ascending);
  ends_.assign(rows_.size(), 0);
  for (const Open& open : open_) ++ends_[place[open.at]];
  std::exclusive_scan(ends_.begin(), ends_.end(), ends_.begin(), std::uint64_t{0});
  entries_.resize(open_.size());
  for (const Open& open : open_) entries_[ends_[place[open.at]]++] = {open.vector, open.coefficient};  // in the order of k
  open_ = {};
}

template <class T>
void Outer<T>::add_to(std::size_t at, std::span<T> into) const {
  for (std::uint64_t i = at == 0 ? 0 : ends_[at - 1]; i < ends_[at]; ++i) {
    const T coefficient = entries_[i].coefficient;
    const T* vector = &vectors_[entries_[i].vector * width_];
    for (std::size_t j = 0; j < into.size(); ++j) into[j] += coefficient * vector[j];
  }
}

template <class T>
Bytes Outer<T>::write() const {
  const OuterHead head{vectors(), static_cast<std::uint32_t>(rows_.size()), static_cast<std::uint32_t>(entries_.size())};
  const std::size_t index = index_bytes(head.vectors);
  std::vector<std::byte> places(2 * kLongestVarint * rows_.size());
  std::byte* end = places.data();
  Key last = 0;
  for (std::size_t at = 0; at < rows_.size(); ++at) {
    end = put_varint(end, rows_[at] - last);
    end = put_varint(end, ends_[at] - (at == 0 ? 0 : ends_[at - 1]));
    last = rows_[at];
  }
  const auto of_places = static_cast<std::size_t>(end - places.data());
  const Bytes bytes(sizeof(OuterHead) + vectors_.size() * sizeof(T) + entries_.size() * (sizeof(float) + index) + of_places);
  std::byte* to = bytes.data();
  const auto append = [&to](const void* from, std::size_t count) {
    if (count > 0) std::memcpy(to, from, count);
    to += count;
  };
  append(&head, sizeof(head));
  append(vectors_.data(), vectors_.size() * sizeof(T));
  for (const Entry& entry : entries_) append(&entry.coefficient, sizeof(float));
  for (const Entry& entry : entries_) append(&entry.vector, index);  // its low bytes come first (x86, ARM)
  append(places.data(), of_places);
  return bytes;
}

template <class T>
Outer<T> Outer<T>::read(std::span<const std::byte> from, std::size_t width, Key end) {
  Taken taken(from);
  OuterHead head;
  std::memcpy(&head, taken.bytes(sizeof(head)).data(), sizeof(head));
  const std::size_t index = index_bytes(head.vectors);
  Outer outer(width);
  const auto copy = [&](void* to, std::size_t bytes) {
    const auto source = taken.bytes(bytes);
    if (bytes > 0) std::memcpy(to, source.data(), bytes);
  };
  // Before anything of that size is made room for.
  if (width * sizeof(T) * head.vectors + head.entries * (sizeof(float) + index) + head.rows > from.size()) refuse("factors end early");
  outer.vectors_.resize(width * head.vectors);
  outer.entries_.resize(head.entries);
  copy(outer.vectors_.data(), outer.vectors_.size() * sizeof(T));
  for (Entry& entry : outer.entries_) copy(&entry.coefficient, sizeof(float));
  if (!all_finite(outer.vectors_) || !all_finite(outer.entries_ | std::views::transform(&Entry::coefficient))) refuse("a factor is not finite");
  for (Entry& entry : outer.entries_) {
    entry.vector = 0;
    copy(&entry.vector, index);
    if (entry.vector >= head.vectors) refuse("a factor belongs to no sample");
  }
  Key row = 0;
  std::uint64_t entries = 0;
  for (std::uint32_t at = 0; at < head.rows; ++at) {
    const Key step = taken.number();
    if (step >= end - row || (at > 0 && step == 0)) refuse("factors of row " + std::to_string(row + step) + " of " + std::to_string(end));
    row += step;
    const std::uint64_t count = taken.number();
    if (count > head.entries - entries) refuse("more factors than were announced");
    entries += count;
    outer.rows_.push_back(row);
    outer.ends_.push_back(entries);
  }
  if (entries != head.entries || !taken.empty()) refuse("more factors than rows have");
  return outer;
}

template class Outer<float>;
template class Outer<double>;

}  // namespace shoal::factor
