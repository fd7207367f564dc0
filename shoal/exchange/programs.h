// The verified programs of one group of members, each built and proved once.
//
// Threads: the caller's, as exchange.h. A program stays where it is until this goes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "shoal/collective/select.h"
#include "shoal/collective/verify.h"

namespace shoal::exchange {

class Programs {
 public:
  explicit Programs(std::uint32_t ranks) : ranks_(ranks) {}
  // For its trees; the first one told stays. nullptr: it is not known.
  void know(const std::shared_ptr<const collective::KnownNetwork>& network) {
    if (!network_) network_ = network;
  }

  const collective::Verified& named(collective::Collective collective, const std::string& builder);
  const collective::Verified& served(std::uint32_t servers);  // collective::served_all_reduce
  const collective::Verified& marking();  // an all-reduce of few bytes
  const collective::Verified& cheapest(collective::Collective collective, std::uint64_t bytes, const collective::LinkModel& link);

 private:
  std::uint32_t ranks_;
  std::shared_ptr<const collective::KnownNetwork> network_;
  std::map<std::pair<collective::Collective, std::string>, collective::Verified> programs_;
};

}  // namespace shoal::exchange
