#include "shoal/exchange/programs.h"

#include "shoal/collective/build.h"
#include "shoal/exchange/choice.h"

namespace shoal::exchange {

const collective::Verified& Programs::named(collective::Collective collective, const std::string& builder) {
  const auto known = programs_.find({collective, builder});
  if (known != programs_.end()) return known->second;
  return programs_.emplace(std::pair(collective, builder), program_named(collective, builder, ranks_, 0, network_.get())).first->second;
}

const collective::Verified& Programs::served(std::uint32_t servers) {
  const std::pair key(collective::Collective::all_reduce, served_by(servers));
  const auto known = programs_.find(key);
  if (known != programs_.end()) return known->second;
  return programs_.emplace(key, verify(collective::served_all_reduce(ranks_, servers))).first->second;
}

const collective::Verified& Programs::marking() {
  return named(collective::Collective::all_reduce, ranks_ <= 8 ? "gather" : "recursive_doubling");
}

const collective::Verified& Programs::cheapest(collective::Collective collective, std::uint64_t bytes, const collective::LinkModel& link) {
  return named(collective, collective::choose(collective, ranks_, static_cast<double>(bytes), link));
}

}  // namespace shoal::exchange
