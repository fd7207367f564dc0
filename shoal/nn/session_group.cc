#include "shoal/nn/session_group.h"

#include <numeric>
#include <utility>

#include "shoal/net/call.h"

namespace shoal::nn {

SessionGroup::SessionGroup(std::unique_ptr<net::Job> over, std::uint16_t survivors_channel) : job(std::move(over)) {
  if (job->place().size == 1) return;
  net::Transport& transport = job->transport();
  std::vector<net::Rank> everybody(job->place().size);
  std::iota(everybody.begin(), everybody.end(), net::Rank{0});
  runners.push_back(std::make_shared<collective::Runner>(transport, everybody));
  if (!net::goes_on(transport.on_peer_lost())) return;
  net::call(transport, [&] { survivors = std::make_shared<collective::Survivors>(transport, everybody, survivors_channel); });
}

SessionGroup::~SessionGroup() {
  if (runners.empty()) return;
  net::call(job->transport(), [this] {
    survivors.reset();
    runners.clear();
  });
}

}  // namespace shoal::nn
