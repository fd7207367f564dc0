#include "shoal/data/names.h"

#include <span>

#include "shoal/core/error.h"
#include "shoal/core/fnv.h"

namespace shoal::data {

std::uint32_t Names::hash_of(std::string_view name) {
  Fnv1a hash;
  hash.add_words(std::as_bytes(std::span(name)));
  // A product's upper bits depend on all bits of the factors, its lower ones only on the lower ones; these choose the slot.
  return static_cast<std::uint32_t>((hash.value() ^ hash.value() >> 32) * 0x9E3779B97F4A7C15u >> 32);
}

std::size_t Names::place_of(std::string_view name, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.number == kEmpty || (slot.hash == hash && (*this)[slot.number] == name)) return at;
  }
}

std::uint32_t Names::number(std::string_view name) {
  const std::uint32_t hash = hash_of(name);
  std::size_t at = place_of(name, hash);
  if (slots_[at].number != kEmpty) return slots_[at].number;
  if (size() == kEmpty) throw Error(Code::invalid_argument, "more than 4294967295 different names");
  if (2 * (ends_.size() + 1) > slots_.size()) {
    grow();
    at = place_of(name, hash);
  }
  slots_[at] = {hash, size()};
  text_ += name;
  ends_.push_back(text_.size());
  return size() - 1;
}

std::optional<std::uint32_t> Names::find(std::string_view name) const {
  const Slot& slot = slots_[place_of(name, hash_of(name))];
  return slot.number == kEmpty ? std::nullopt : std::optional(slot.number);
}

void Names::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number == kEmpty) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].number != kEmpty) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace shoal::data
