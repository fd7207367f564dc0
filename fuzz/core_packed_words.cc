// Any bytes as packed words of some length: they are refused, or fill just that memory; and what is packed comes back. Run fuzz_core_packed_words [corpus folder].
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "fuzz/target.h"
#include "shoal/core/packed_words.h"

SHOAL_FUZZ(core_packed_words, data, size) {
  if (size < 2) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(2);
  std::vector<std::byte> into(data[0] + (std::size_t{data[1]} << 8));
  shoal::unpack_words(bytes, into);
  const std::vector<std::byte> aligned(bytes.begin(), bytes.end());
  std::vector<std::byte> packed(shoal::room_to_pack(aligned.size())), back(aligned.size());
  packed.resize(shoal::pack_words(aligned, packed.data()));
  if (!packed.empty() && (!shoal::unpack_words(packed, back) || back != aligned)) std::abort();
  return 0;
}
