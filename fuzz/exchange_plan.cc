// Any bytes as a plan.json, and a sound one with its network and its rules in which they stand for some of its bytes (the first two say where, the third
// how many): refused in one line, or read, and then written and read back the same. Run fuzz_exchange_plan [corpus folder].
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/exchange/plan.h"
#include "shoal/exchange/planner.h"

namespace {

using namespace shoal;
using namespace shoal::exchange;

void read(const std::string& text) {
  ExchangePlan plan;
  try {
    plan = plan_from_json(text, "fuzz");
  } catch (const Error& error) {
    const bool expected = error.code() == Code::invalid_argument || error.code() == Code::unsupported;
    if (!expected || std::string(error.what()).find('\n') != std::string::npos) std::abort();
    return;
  }
  const std::string again = to_json(plan);
  if (to_json(plan_from_json(again, "fuzz")) != again) std::abort();
}

std::string sound_plan() {
  topo::Topology topology;
  topology.hosts = {"a", "b", "c"};
  topology.link_both_ways(0, 1, 125e6);
  topology.link_both_ways(1, 2, 25e6);
  collective::LinkModel link;
  link.network = collective::KnownNetwork::made_for(topology);
  link.tuning = std::make_shared<const collective::Tuning>("allreduce:1M-inf:[2-4]:@trees");
  return to_json(make_plan({{"w", DType::f32, 100000, 0, 0.0}, {"b", DType::f32, 10, 0, 0.0}}, 3, link));
}

}  // namespace

SHOAL_FUZZ(exchange_plan, data, size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  if (size < 3) return 0;
  static const std::string sound = sound_plan();
  std::string changed = sound;
  const std::size_t at = (data[0] * std::size_t{256} + data[1]) % sound.size();
  changed.replace(at, std::min<std::size_t>(data[2], sound.size() - at), bytes.substr(3));
  read(changed);
  return 0;
}
