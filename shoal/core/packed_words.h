// Numbers in fewer bytes, and every bit of them kept: for links that are slower than this is (net/connection.h).
//
// Of floats that lie side by side in a gradient the exponents are close together, signs and mantissas are noise: 3 bits say by how much an exponent is below
// its block's greatest, and zeros, of which rectified layers have many, take one. Gradients of dense layers take 0.86 of their bytes, and whatever else is in 32
// bits is packed if that saves a sixteenth. Their entropy is 0.84 to 0.86; this reads some 10 GB/s, and writes back 15 (docs/ways.md has what models take).
//
// A block stands for 64 words (with the sign last: x rotated by one bit), of the last one for what is left:
//
//     greatest  kind  [which]  steps                    middle, low and sign         far
//     u8        u8    u64      3 planes of a bit a word  3 planes of a byte a word   u8 each
//
// kind: full, 64 words are there; some, those that `which` has bits of, all others are 0; none, nothing follows. Of m words planes of bits have ceil(m / 8)
// bytes. An exponent that is 7 or more below the greatest has step 7, and stands under `far`, in order. Bytes behind the last word stand as they are at the end.
//
// Threads: pure functions, by the widest vectors of this CPU (Highway), which all give the same bytes.
#pragma once

#include <cstddef>
#include <span>

namespace shoal {

inline constexpr std::size_t kPackedBlock = 256;  // bytes: what is cut into multiples of it is packed as well as the whole

// Bytes of memory that pack_words() may write to.
constexpr std::size_t room_to_pack(std::size_t bytes) { return bytes + 512; }

// Writes `bytes` to `into`, packed; returns how many bytes that took, or 0 if they cannot be packed into fifteen sixteenths, or do not lie at a multiple of 4. Of
// what does not begin so it reads no more than some KB.
std::size_t pack_words(std::span<const std::byte> bytes, std::byte* into);

// Fills `into` from what pack_words() made of as many bytes. false: it did not make this.
bool unpack_words(std::span<const std::byte> packed, std::span<std::byte> into);

// Of its bytes what packing leaves, about: by some of its blocks.
double packed_share(std::span<const std::byte> bytes);

}  // namespace shoal
