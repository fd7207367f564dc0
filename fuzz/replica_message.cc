// Any bytes as headers of what a member tells all others of a replica, with short bodies: each is refused, which ends the job in one line, or follows on
// what came of its origin and is delivered and passed on. Run fuzz_replica_message [corpus folder].
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/net/inproc.h"
#include "shoal/replica/broadcast.h"

SHOAL_FUZZ(replica_message, data, size) {
  using namespace shoal;
  constexpr std::uint16_t channel = 9;
  constexpr net::Rank members = 4;
  net::InprocJob job(members);
  std::vector<std::uint64_t> next(members, 1);  // by origin, behind its description
  replica::Broadcast broadcast(job.member(0), channel, factor::Overlay::halton(members), "f", [&](replica::Message message) {
    const replica::Header& header = message.header;
    if (header.origin == 0 || header.origin >= members || header.kind == replica::Kind::description) std::abort();
    if (message.body.size() != header.length) std::abort();
    std::uint64_t& follows = next[header.origin];
    const bool says_nothing = header.kind == replica::Kind::leaving && header.sequence == 0;  // nor described what it has
    if (header.sequence != follows && !(says_nothing && follows == 1)) std::abort();
    if (header.kind != replica::Kind::leaving) ++follows;  // that says how many there were
  });
  // Rank 1 as whoever may have written that: its bytes as they are.
  using replica::Header;
  const net::Tag tag{net::operation_in(channel, 0), 0};
  job.member(1).send(0, tag, {.cls = net::Class::urgent}, std::as_bytes(std::span(data, size)), [](const net::Failure&) {});
  // And rank 2 with what can be a header, but for what it says.
  std::vector<std::byte> said;
  for (std::span<const std::uint8_t> rest(data, size); rest.size() >= 4; rest = rest.subspan(4)) {
    Header header{.length = rest[3] % 4U,
                  .kind = static_cast<replica::Kind>(1 + rest[0] % 5),
                  .ends_clock = 0,
                  .origin = rest[1] % (members + 1U),
                  .sequence = rest[2]};
    const auto bytes = std::as_bytes(std::span(&header, 1));
    said.insert(said.end(), bytes.begin(), bytes.end());
    said.insert(said.end(), header.length, std::byte{'f'});
  }
  job.member(2).send(0, tag, {.cls = net::Class::urgent}, said, [](const net::Failure&) {});
  job.run();
  return 0;
}
