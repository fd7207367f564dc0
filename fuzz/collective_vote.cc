// Any bytes as the votes of a group's members: nothing may crash, what is accepted is the same bytes again, and an agreement that hears it comes to no
// other conclusion than that of its own loss. Run fuzz_collective_vote [corpus folder].
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "fuzz/target.h"
#include "shoal/collective/agreement.h"

SHOAL_FUZZ(collective_vote, data, size) {
  using namespace shoal::collective;
  if (size == 0) return 0;
  const std::uint32_t members = 1 + data[0] % 70;
  auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  Agreement agreement(members, 0);
  for (std::uint32_t from = 1; bytes.size() >= vote_bytes(members) && from < members; ++from) {
    const auto one = bytes.first(vote_bytes(members));
    bytes = bytes.subspan(one.size());
    const auto vote = decode_vote(one, members);
    if (!vote) continue;
    std::vector<std::byte> again(one.size());
    encode(*vote, again);
    if (!std::ranges::equal(again, one)) std::abort();
    if (agreement.heard(from, *vote)) agreement.next_vote();
    if (agreement.conclude() && agreement.concluded().lost[0]) std::abort();  // without this member nobody speaks for it
    (void)agreement.fate(agreement.held());
  }
  return 0;
}
