// Compiled once per target by foreach_target, as reduce.cc is.
#include "shoal/core/packed_words.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "shoal/core/packed_words.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef SHOAL_PACKED_BLOCK
#define SHOAL_PACKED_BLOCK
namespace shoal::packed {
constexpr std::size_t kBytes = kPackedBlock, kWords = kBytes / sizeof(std::uint32_t);
static_assert(kWords == 64);  // a bit each in a word of masks
constexpr std::size_t kLook = 15 * kBytes;  // after which what saves nothing so far is left alone
constexpr std::uint64_t all_of(std::size_t words) { return words == kWords ? ~std::uint64_t{0} : (std::uint64_t{1} << words) - 1; }
constexpr std::size_t worth(std::size_t bytes) { return bytes - bytes / 16; }
constexpr std::size_t kFar = 7;  // and beyond
constexpr std::size_t kMostBytes = 2 + 8 + kWords * 3 / 8 + kWords * 4;
// A block is written by whole vectors: so many bytes behind it may be written to, and be read by who unpacks it.
constexpr std::size_t kSlack = 64;
enum Kind : std::uint8_t { full, some, none };
static_assert(std::endian::native == std::endian::little);
}  // namespace shoal::packed
#endif

HWY_BEFORE_NAMESPACE();
namespace shoal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using packed::all_of;
using packed::kFar;
using packed::kWords;
using Words = hn::CappedTag<std::uint32_t, kWords>;
using Bytes = hn::CappedTag<std::uint8_t, kWords>;
using FewBytes = hn::Rebind<std::uint8_t, Words>;

// Of lanes from word or byte i of a block on.
template <class D, class Mask>
std::uint64_t bits_of(D d, Mask mask, std::size_t i) {
  std::uint8_t stored[8] = {};
  hn::StoreMaskBits(d, mask, stored);
  return std::bit_cast<std::uint64_t>(stored) << i;
}
template <class D>
auto mask_of(D d, std::uint64_t bits, std::size_t i) {
  const auto shifted = bits >> i;
  return hn::LoadMaskBits(d, reinterpret_cast<const std::uint8_t*>(&shifted));
}

// Where the words of a block that are not 0 begin: those at `words`, or in `room`, one after another. which: their bits.
const std::uint32_t* present_of(const std::uint32_t* words, std::uint32_t* room, std::uint64_t& which) {
  const Words d;
  which = 0;
  for (std::size_t i = 0; i < kWords; i += hn::Lanes(d)) {
    which |= bits_of(d, hn::Ne(hn::LoadU(d, words + i), hn::Zero(d)), i);
  }
  if (which == ~std::uint64_t{0} || which == 0) return words;
  std::size_t count = 0;
  for (std::size_t i = 0; i < kWords; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, words + i);
    count += hn::CompressStore(v, hn::Ne(v, hn::Zero(d)), d, room + count);
  }
  std::fill(room + count, room + kWords, 0);
  return room;
}

std::byte* pack_block(const std::uint32_t* words, std::byte* into) {
  const Words d;
  const FewBytes few;
  const Bytes bytes;
  std::uint64_t which;
  HWY_ALIGN std::uint32_t room[2 * kWords];
  const std::uint32_t* const from = present_of(words, room, which);
  const auto count = static_cast<std::size_t>(std::popcount(which));
  auto* out = reinterpret_cast<std::uint8_t*>(into);
  out[1] = count == kWords ? packed::full : count == 0 ? packed::none : packed::some;
  if (count == 0) {
    out[0] = 0;
    return into + 2;
  }
  std::uint8_t* at = out + 2;
  if (count < kWords) {
    std::memcpy(at, &which, sizeof which);
    at += sizeof which;
  }
  const std::size_t plane = (count + 7) / 8;
  HWY_ALIGN std::uint8_t exponents[kWords];
  std::uint8_t* const rest = at + 3 * plane;
  auto most = hn::Zero(d);
  for (std::size_t p = 0; p < 3; ++p) {  // in order of address: what a plane of fewer words has too much the next one overwrites
    for (std::size_t i = 0; i < kWords; i += hn::Lanes(d)) {
      const auto word = hn::RotateRight<31>(hn::LoadU(d, from + i));
      if (p == 0) {
        most = hn::Max(most, word);
        hn::StoreU(hn::TruncateTo(few, hn::ShiftRight<24>(word)), few, exponents + i);
        hn::StoreU(hn::TruncateTo(few, hn::ShiftRight<16>(word)), few, rest + i);
      } else {
        hn::StoreU(hn::TruncateTo(few, p == 1 ? hn::ShiftRight<8>(word) : word), few, rest + p * count + i);
      }
    }
  }
  out[0] = static_cast<std::uint8_t>(hn::GetLane(hn::MaxOfLanes(d, most)) >> 24);
  std::uint64_t steps[3] = {}, far = all_of(count);
  for (std::size_t i = 0; i < kWords; i += hn::Lanes(bytes)) {
    const auto below = hn::Min(hn::Sub(hn::Set(bytes, out[0]), hn::Load(bytes, exponents + i)), hn::Set(bytes, static_cast<std::uint8_t>(kFar)));
    for (std::size_t b = 0; b < 3; ++b) steps[b] |= bits_of(bytes, hn::TestBit(below, hn::Set(bytes, static_cast<std::uint8_t>(1U << b))), i);
  }
  for (std::size_t b = 0; b < 3; ++b) {
    far &= steps[b];
    std::memcpy(at + b * plane, &steps[b], plane);
  }
  std::uint8_t* end = rest + 3 * count;
  for (; far != 0; far &= far - 1) *end++ = exponents[std::countr_zero(far)];
  return reinterpret_cast<std::byte*>(end);
}

// Behind the block; nullptr if this is none. `from` has kMostBytes + kSlack that can be read.
const std::byte* unpack_block(const std::byte* from, std::uint32_t* words) {
  const Words d;
  const FewBytes few;
  const Bytes bytes;
  const auto* const in = reinterpret_cast<const std::uint8_t*>(from);
  if (in[1] > packed::none) return nullptr;
  if (in[1] == packed::none) {
    std::fill_n(words, kWords, 0);
    return from + 2;
  }
  const std::uint8_t* at = in + 2;
  std::uint64_t which = ~std::uint64_t{0};
  if (in[1] == packed::some) {
    std::memcpy(&which, at, sizeof which);
    at += sizeof which;
  }
  const auto count = static_cast<std::size_t>(std::popcount(which));
  const std::size_t plane = (count + 7) / 8;
  HWY_ALIGN std::uint8_t exponents[kWords];
  std::uint64_t steps[3] = {}, far = all_of(count);
  for (std::size_t b = 0; b < 3; ++b) {
    std::memcpy(&steps[b], at + b * plane, plane);
    far &= steps[b];
  }
  for (std::size_t i = 0; i < kWords; i += hn::Lanes(bytes)) {
    const auto step = [&](std::size_t b) { return hn::IfThenElseZero(mask_of(bytes, steps[b], i), hn::Set(bytes, static_cast<std::uint8_t>(1U << b))); };
    hn::Store(hn::Sub(hn::Set(bytes, in[0]), hn::Or(step(0), hn::Or(step(1), step(2)))), bytes, exponents + i);
  }
  const std::uint8_t* const rest = at + 3 * plane;
  const std::uint8_t* end = rest + 3 * count;
  for (; far != 0; far &= far - 1) exponents[std::countr_zero(far)] = *end++;
  HWY_ALIGN std::uint32_t room[kWords];
  std::uint32_t* const into = count == kWords ? words : room;
  for (std::size_t i = 0; i < kWords; i += hn::Lanes(d)) {
    const auto wide = [&](const std::uint8_t* of) { return hn::PromoteTo(d, hn::LoadU(few, of)); };
    const auto high = hn::Or(hn::ShiftLeft<24>(wide(exponents + i)), hn::ShiftLeft<16>(wide(rest + i)));
    const auto low = hn::Or(hn::ShiftLeft<8>(wide(rest + count + i)), wide(rest + 2 * count + i));
    hn::StoreU(hn::RotateRight<1>(hn::Or(high, low)), d, into + i);
  }
  if (into == room) {
    std::fill_n(words, kWords, 0);
    for (const std::uint32_t* next = room; which != 0; which &= which - 1) words[std::countr_zero(which)] = *next++;
  }
  return reinterpret_cast<const std::byte*>(end);
}

// At most `most` bytes of them, else 0.
std::size_t pack_all(const std::byte* from, std::size_t bytes, std::byte* into, std::size_t most) {
  std::byte* end = into;
  std::size_t done = 0;
  for (; done + packed::kBytes <= bytes; done += packed::kBytes) {
    end = pack_block(reinterpret_cast<const std::uint32_t*>(from + done), end);
    const auto size = static_cast<std::size_t>(end - into);
    if (size > most || (done == packed::kLook && size > packed::worth(done + packed::kBytes))) return 0;
  }
  const std::size_t words = (bytes - done) / 4 * 4;
  if (words > 0) {
    HWY_ALIGN std::uint32_t last[kWords] = {};
    std::memcpy(last, from + done, words);
    end = pack_block(last, end);
    done += words;
  }
  end = std::copy(from + done, from + bytes, end);
  const auto size = static_cast<std::size_t>(end - into);
  return size <= most ? size : 0;
}

bool unpack_all(const std::byte* from, std::size_t size, std::byte* into, std::size_t bytes) {
  const std::byte* const stop = from + size;
  std::byte near_the_end[packed::kMostBytes + packed::kSlack];
  std::size_t done = 0;
  const auto one = [&](std::uint32_t* words) {
    const auto left = static_cast<std::size_t>(stop - from);
    if (left >= sizeof near_the_end) {
      from = unpack_block(from, words);
      return from != nullptr;
    }
    std::fill(std::copy(from, stop, near_the_end), std::end(near_the_end), std::byte{0});
    const std::byte* const behind = unpack_block(near_the_end, words);
    if (behind == nullptr || static_cast<std::size_t>(behind - near_the_end) > left) return false;
    from += behind - near_the_end;
    return true;
  };
  HWY_ALIGN std::uint32_t block[kWords];
  const bool aligned = reinterpret_cast<std::uintptr_t>(into) % alignof(std::uint32_t) == 0;
  for (; done + packed::kBytes <= bytes; done += packed::kBytes) {
    std::uint32_t* const words = aligned ? reinterpret_cast<std::uint32_t*>(into + done) : block;
    if (!one(words)) return false;
    if (!aligned) std::memcpy(into + done, block, packed::kBytes);
  }
  const std::size_t words = (bytes - done) / 4 * 4;
  if (words > 0) {
    if (!one(block)) return false;
    std::memcpy(into + done, block, words);
    done += words;
  }
  if (static_cast<std::size_t>(stop - from) != bytes - done) return false;
  std::copy(from, stop, into + done);
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace shoal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal {

HWY_EXPORT(pack_all);
HWY_EXPORT(unpack_all);

std::size_t pack_words(std::span<const std::byte> bytes, std::byte* into) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::uint32_t) != 0) return 0;
  return HWY_DYNAMIC_DISPATCH(pack_all)(bytes.data(), bytes.size(), into, packed::worth(bytes.size()));
}

bool unpack_words(std::span<const std::byte> packed, std::span<std::byte> into) {
  return HWY_DYNAMIC_DISPATCH(unpack_all)(packed.data(), packed.size(), into.data(), into.size());
}

double packed_share(std::span<const std::byte> bytes) {
  constexpr std::size_t kPiece = packed::kBytes, kPieces = 256;
  std::byte into[room_to_pack(kPiece)];
  const std::size_t apart = (bytes.size() / kPiece / kPieces + 1) * kPiece;
  double read = 0, left = 0;
  for (std::size_t at = 0; at < bytes.size(); at += apart) {
    const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
    read += static_cast<double>(piece.size());
    const std::size_t size = pack_words(piece, into);
    left += static_cast<double>(size > 0 ? size : piece.size());
  }
  return read > 0 ? left / read : 1;
}

}  // namespace shoal
#endif  // HWY_ONCE
