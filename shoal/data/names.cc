#include "shoal/data/names.h"

#include <span>

#include "shoal/core/error.h"
#include "shoal/core/fnv.h"

namespace shoal::data {
namespace {

// A product's upper bits depend on all bits of its factors (Knuth, The Art of Computer Programming 3, 6.4).
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;

}  // namespace

std::uint64_t Names::digest() const {
  Fnv1a digest;
  for (std::uint32_t number = 0; number < size(); ++number) {
    digest.add_bytes(std::as_bytes(std::span((*this)[number])));
    digest.add_bytes(std::as_bytes(std::span("\n", 1)));
  }
  return digest.value();
}

Names::Slot Names::slot_for(std::string_view name) {
  Slot slot;
  slot.length = static_cast<std::uint32_t>(name.size());  // its lower bits: letters are compared where it counts
  if (name.size() <= sizeof slot.head) {
    for (const char c : name) slot.head = slot.head << 8 | static_cast<unsigned char>(c);
  } else {
    Fnv1a hash;
    hash.add_words(std::as_bytes(std::span(name)));
    slot.head = hash.value() ^ hash.value() >> 32;
  }
  return slot;
}

std::size_t Names::place_of(std::string_view name, const Slot& slot) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = slot.head * kGolden >> shift_;; at = (at + 1) & mask) {
    const Slot& there = slots_[at];
    if (there.number == kEmpty) return at;
    if (there.head == slot.head && there.length == slot.length && (name.size() <= sizeof slot.head || (*this)[there.number] == name)) return at;
  }
}

std::uint32_t Names::number(std::string_view name) {
  Slot slot = slot_for(name);
  std::size_t at = place_of(name, slot);
  if (slots_[at].number != kEmpty) return slots_[at].number;
  if (size() == kEmpty) throw Error(Code::invalid_argument, "more than 4294967295 different names");
  if (2 * (ends_.size() + 1) > slots_.size()) {
    grow();
    at = place_of(name, slot);
  }
  slot.number = size();
  slots_[at] = slot;
  text_ += name;
  ends_.push_back(text_.size());
  return slot.number;
}

std::optional<std::uint32_t> Names::find(std::string_view name) const {
  const Slot& slot = slots_[place_of(name, slot_for(name))];
  return slot.number == kEmpty ? std::nullopt : std::optional(slot.number);
}

void Names::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  --shift_;
  for (const Slot& slot : old) {
    if (slot.number != kEmpty) slots_[place_of((*this)[slot.number], slot)] = slot;
  }
}

}  // namespace shoal::data
