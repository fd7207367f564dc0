#include "shoal/nn/session_group.h"

#include <numeric>
#include <utility>

#include "shoal/net/call.h"

namespace shoal::nn {

std::vector<net::Rank> first_ranks(net::Rank count) {
  std::vector<net::Rank> ranks(count);
  std::iota(ranks.begin(), ranks.end(), net::Rank{0});
  return ranks;
}

SessionGroup::SessionGroup(std::unique_ptr<net::Job> over, std::uint16_t survivors_channel) : job(std::move(over)) {
  if (job->place().size == 1) return;
  net::Transport& transport = job->transport();
  const auto everybody = first_ranks(job->place().size);
  runners.push_back(std::make_shared<collective::Runner>(transport, everybody));
  if (!net::goes_on(transport.on_peer_lost())) return;
  const auto made = net::call(transport, [&transport, everybody, survivors_channel] { return std::make_shared<collective::Survivors>(transport, everybody, survivors_channel); });
  if (!made) throw Error(Code::internal, "the network's loop does not answer", "those who are left");
  survivors = *made;
}

SessionGroup::~SessionGroup() {
  if (runners.empty()) return;
  net::call(job->transport(), [this] {
    survivors.reset();
    runners.clear();
  });
}

}  // namespace shoal::nn
