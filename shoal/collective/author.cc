#include "shoal/collective/author.h"

#include <fmt/format.h>

#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

Op make(OpKind kind, std::uint32_t peer, std::uint32_t chunk, std::vector<Site> sources, Site target) {
  Op op;
  op.kind = kind;
  op.peer = peer;
  op.chunk = chunk;
  op.sources = std::move(sources);
  op.target = target;
  return op;
}

}  // namespace

Op send(std::uint32_t peer, std::uint32_t chunk, Site source) { return make(OpKind::send, peer, chunk, {source}, {}); }

Op receive(std::uint32_t peer, std::uint32_t peer_lane, std::uint32_t chunk, Site target) {
  Op op = make(OpKind::receive, peer, chunk, {}, target);
  op.peer_lane = peer_lane;
  return op;
}

Op receive_reduce(std::uint32_t peer, std::uint32_t peer_lane, std::uint32_t chunk, Site source, Site target) {
  Op op = make(OpKind::receive_reduce, peer, chunk, {source}, target);
  op.peer_lane = peer_lane;
  return op;
}

Op fold(std::uint32_t chunk, std::vector<Site> sources, Site target) {
  return make(OpKind::fold, 0, chunk, std::move(sources), target);
}

Op copy(std::uint32_t chunk, Site source, Site target) { return make(OpKind::copy, 0, chunk, {source}, target); }

Op after(Op op, Mark mark, std::int32_t shift) {
  op.after.push_back({mark.lane, mark.op, shift});
  return op;
}

Op completing(Op op) {
  op.completes = true;
  return op;
}

Op stepping(Op op, std::int32_t chunk_step) {
  op.chunk_step = chunk_step;
  return op;
}

Author::Author(std::string name, Collective collective, std::uint32_t ranks, AddOrder order) {
  if (ranks < 1 || ranks > kMaxRanks) {
    throw Error(Code::invalid_argument, fmt::format("{} members; a program has 1 to {}", ranks, kMaxRanks), name);
  }
  program_.name = std::move(name);
  program_.collective = collective;
  program_.ranks = ranks;
  program_.order = order;
  program_.lanes.resize(ranks);
}

void Author::root(std::uint32_t rank) {
  if (rank >= program_.ranks) {
    throw Error(Code::invalid_argument, fmt::format("root {} of {} members", rank, program_.ranks), program_.name);
  }
  program_.root = rank;
}

std::uint32_t Author::lane(std::uint32_t rank) {
  program_.lanes[rank].emplace_back();
  return static_cast<std::uint32_t>(program_.lanes[rank].size() - 1);
}

Mark Author::add(std::uint32_t rank, std::uint32_t lane, Op op, std::uint32_t times) {
  Lane& loops = program_.lanes[rank][lane];
  std::uint32_t number = 0;
  for (const Loop& loop : loops) number += static_cast<std::uint32_t>(loop.ops.size());
  if (times > 0) {
    Loop loop;
    loop.times = times;
    if (times == 1) op.chunk_step = 0;  // of no iteration: it would only be in the way when shown
    loop.ops.push_back(std::move(op));
    loops.push_back(std::move(loop));
  }
  return {lane, number};
}

void check_pair_ranks(const std::string& name, std::uint32_t ranks) {
  if (ranks > kMaxPairRanks) {
    throw Error(Code::invalid_argument, fmt::format("{} members; at most {} where every pair talks", ranks, kMaxPairRanks),
                name, "take ring");
  }
}

Program alone(std::string name, Collective collective, AddOrder order) {
  Author author(std::move(name), collective, 1, order);
  Op op = copy(0, kInput, kOutput);
  op.completes = order != AddOrder::none;
  author.add(0, author.lane(0), std::move(op));
  return author.take();
}

}  // namespace shoal::collective
