// Any bytes as frames of either channel, as a hello and as the payloads of control messages: nothing may crash, and what is
// accepted is within its bounds. Run fuzz_net_frame [corpus folder].
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "fuzz/target.h"
#include "shoal/net/frame.h"
#include "shoal/net/handshake.h"

SHOAL_FUZZ(net_frame, data, size) {
  using namespace shoal::net;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (size >= wire::kHeaderBytes) {
    for (const auto channel : {wire::Channel::control, wire::Channel::bulk, wire::Channel::memory}) {
      const auto header = wire::decode(bytes.first<wire::kHeaderBytes>(), channel);
      if (!header) continue;
      if (header->length > wire::kMaxFrame) std::abort();
      const auto again = wire::encode(*header);
      if (!std::equal(again.begin(), again.end(), bytes.begin())) std::abort();
    }
  }
  if (const auto returned = wire::decode_returned(bytes); returned && returned->size() > wire::kReturnedPerFrame) std::abort();
  if (const auto credit = wire::decode_credit(bytes); credit && credit->grants.size() > wire::kGrantsPerFrame) std::abort();
  if (const auto beat = wire::decode_heartbeat(bytes); beat && beat->activity.size() > wire::kMaxActivity) std::abort();
  if (const auto notice = wire::decode_notice(bytes); notice && notice->reason.size() > wire::kMaxReason) std::abort();
  if (size >= kHelloBytes && decode_hello(derive_key("fuzz"), bytes.first<kHelloBytes>())) std::abort();  // a forgery
  return 0;
}
