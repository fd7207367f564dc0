// A job of a session's members, and what runs over it. A session moves from one to the next where others come in place of lost members.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shoal/collective/survivors.h"
#include "shoal/net/job.h"

namespace shoal::nn {

std::vector<net::Rank> first_ranks(net::Rank count);  // 0, 1, ...

struct SessionGroup {
  // survivors_channel: of the agreement on who is left, where the job goes on without members that are lost.
  SessionGroup(std::unique_ptr<net::Job> over, std::uint16_t survivors_channel);
  ~SessionGroup();  // given up on its loop

  std::unique_ptr<net::Job> job;
  std::vector<std::shared_ptr<collective::Runner>> runners;  // of all, then of those that were left after each loss; none where one member is alone
  std::shared_ptr<collective::Survivors> survivors;
};

}  // namespace shoal::nn
