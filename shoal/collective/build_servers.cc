// The parameter server as a program (Li et al., OSDI 2014; with shards on the workers' own machines and on spare ones: Jiang et al., BytePS,
// OSDI 2020). Ranks 0..W-1 work, the last H of N = W + H only serve. Every rank owns one chunk: workers send it their contributions,
// it adds them in rank order, and sends the sum back to all workers. A lane a stream, as in build_direct.cc:
//
//     worker w:  own input of chunk c --send--> owner c                                      for every other owner
//     owner c:   from every other worker --receive--> window --.
//                own input, if it works -----------------------+-- fold, by rank --> output --result--> every other worker
//     worker w:  owner c --receive--> output of chunk c
#include <vector>

#include "shoal/collective/author.h"
#include "shoal/collective/build.h"
#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

// Lanes of a rank, in this order: to each other owner its contribution (workers), from each other worker theirs, the fold, to each
// other worker the result, from each other owner the result (workers). `k` counts ranks from the own one on.
struct Lanes {
  std::uint32_t ranks, workers;

  bool works(std::uint32_t rank) const { return rank < workers; }
  std::uint32_t contribution(std::uint32_t from, std::uint32_t to) const { return around(to, -std::int64_t{from}, ranks) - 1; }
  std::uint32_t result(std::uint32_t owner, std::uint32_t to) const {
    const std::uint32_t others = workers - (works(owner) ? 1 : 0);
    std::uint32_t before = 0;
    for (std::uint32_t peer = around(owner, 1, ranks); peer != to; peer = around(peer, 1, ranks)) before += works(peer);
    return (works(owner) ? ranks - 1 : 0) + others + 1 + before;
  }
};

}  // namespace

Program served_all_reduce(std::uint32_t ranks, std::uint32_t servers) {
  check_pair_ranks("servers", ranks);
  if (servers >= ranks) {
    const auto text = std::to_string(servers) + " servers of " + std::to_string(ranks) + " members leave nobody who works";
    throw Error(Code::invalid_argument, text, "servers");
  }
  const Lanes lanes{ranks, ranks - servers};
  Author author("servers", Collective::all_reduce, ranks, AddOrder::left_fold);
  author.servers(servers);
  author.chunks(ranks);
  author.slots(lanes.workers);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto each_other = [&](auto fn) {
      for (std::uint32_t k = 1; k < ranks; ++k) fn(around(rank, k, ranks));
    };
    if (lanes.works(rank)) each_other([&](std::uint32_t owner) { author.add(rank, author.lane(rank), send(owner, owner, kInput)); });
    std::vector<Site> sources(lanes.workers, kInput);
    std::vector<Mark> arrived;
    std::uint32_t next_window = 0;
    each_other([&](std::uint32_t worker) {
      if (!lanes.works(worker)) return;
      sources[worker] = window(next_window++);
      arrived.push_back(author.add(rank, author.lane(rank), receive(worker, lanes.contribution(worker, rank), rank, sources[worker])));
    });
    Op sum = completing(fold(rank, sources, kOutput));
    for (const Mark& mark : arrived) sum = after(std::move(sum), mark);
    const Mark whole = author.add(rank, author.lane(rank), std::move(sum));
    each_other([&](std::uint32_t worker) {
      if (lanes.works(worker)) author.add(rank, author.lane(rank), after(send(worker, rank, kOutput), whole));
    });
    if (!lanes.works(rank)) continue;
    each_other([&](std::uint32_t owner) { author.add(rank, author.lane(rank), receive(owner, lanes.result(owner, rank), owner, kOutput)); });
  }
  return author.take();
}

}  // namespace shoal::collective
