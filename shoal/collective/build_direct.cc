// Programs of one or two steps, in which members talk to each other without a middleman.
//
// Every stream has a lane of its own. A lane that went from peer to peer, chunk after chunk, would dead-lock on scratch
// windows (every owner's windows full of its first sender's slices), and one slow peer would hold up the others.
// Lane k of a kind speaks to the member k+1 places further (sends) or back (receives), so that in every round of
// slices each member hears one sender: no incast. Rank r of an all-reduce:
//
//     own input of chunk r+k --send lane k--> r+k+1
//     r-k-1 --receive lane k--> scratch k --.
//                 ...                       +-- fold, by rank --> output of chunk r --result lane k--> r+k+1
//     own input of chunk r -----------------'
//     r-k-1 --result lane k--> output of chunk r-k-1
#include <functional>
#include <vector>

#include "shoal/collective/author.h"
#include "shoal/collective/build.h"

namespace shoal::collective {

namespace {

using ChunkOf = std::function<std::uint32_t(std::uint32_t peer)>;

// A lane to every other member, the next rank first.
void send_each(Author& author, std::uint32_t ranks, std::uint32_t rank, const ChunkOf& chunk_of, Site source,
               const std::vector<Mark>& ready = {}) {
  for (std::uint32_t k = 1; k < ranks; ++k) {
    const std::uint32_t peer = around(rank, k, ranks);
    Op op = send(peer, chunk_of(peer), source);
    for (const Mark& mark : ready) op = after(std::move(op), mark);
    author.add(rank, author.lane(rank), std::move(op));
  }
}

// A lane from every other member, the rank before this one first. Theirs begin at `sender_lanes`.
void receive_each(Author& author, std::uint32_t ranks, std::uint32_t rank, std::uint32_t sender_lanes,
                  const ChunkOf& chunk_of) {
  for (std::uint32_t k = 1; k < ranks; ++k) {
    const std::uint32_t peer = around(rank, -std::int64_t{k}, ranks);
    author.add(rank, author.lane(rank), receive(peer, sender_lanes + k - 1, chunk_of(peer), kOutput));
  }
}

// Everybody's contribution to `chunk` into windows 0..N-2, then one addition in rank order. `sender_lane_of` tells
// which lane of a peer sends here.
Mark fold_all(Author& author, std::uint32_t ranks, std::uint32_t rank, std::uint32_t chunk,
              const std::function<std::uint32_t(std::uint32_t k)>& sender_lane_of) {
  std::vector<Site> sources(ranks, kInput);
  std::vector<Mark> arrived;
  for (std::uint32_t k = 1; k < ranks; ++k) {
    const std::uint32_t peer = around(rank, -std::int64_t{k}, ranks);
    sources[peer] = window(k - 1);
    arrived.push_back(author.add(rank, author.lane(rank), receive(peer, sender_lane_of(k), chunk, sources[peer])));
  }
  Op op = completing(fold(chunk, std::move(sources), kOutput));
  for (const Mark& mark : arrived) op = after(std::move(op), mark);
  return author.add(rank, author.lane(rank), std::move(op));
}

Author pairs(const std::string& name, Collective collective, std::uint32_t ranks, AddOrder order) {
  check_pair_ranks(name, ranks);
  return Author(name, collective, ranks, order);
}

ChunkOf always(std::uint32_t chunk) {
  return [chunk](std::uint32_t) { return chunk; };
}
std::uint32_t peers_own(std::uint32_t peer) { return peer; }

// One lane for each member but the root, which is alone at the other end.
Author star(const std::string& name, Collective collective, std::uint32_t ranks, std::uint32_t root, AddOrder order) {
  Author author(name, collective, ranks, order);
  author.root(root);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank != root) author.lane(rank);
  }
  return author;
}

}  // namespace

Program direct_all_reduce(std::uint32_t ranks) {
  if (ranks == 1) return alone("direct", Collective::all_reduce, AddOrder::left_fold);
  Author author = pairs("direct", Collective::all_reduce, ranks, AddOrder::left_fold);
  author.chunks(ranks);
  author.slots(ranks - 1);
  const std::uint32_t result_lanes = 2 * (ranks - 1) + 1;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    send_each(author, ranks, rank, peers_own, kInput);
    const Mark whole = fold_all(author, ranks, rank, rank, [](std::uint32_t k) { return k - 1; });
    send_each(author, ranks, rank, always(rank), kOutput, {whole});
    receive_each(author, ranks, rank, result_lanes, peers_own);
  }
  return author.take();
}

Program gather_all_reduce(std::uint32_t ranks) {
  if (ranks == 1) return alone("gather", Collective::all_reduce, AddOrder::left_fold);
  Author author = pairs("gather", Collective::all_reduce, ranks, AddOrder::left_fold);
  author.slots(ranks - 1);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    send_each(author, ranks, rank, always(0), kInput);
    fold_all(author, ranks, rank, 0, [](std::uint32_t k) { return k - 1; });
  }
  return author.take();
}

Program direct_reduce_scatter(std::uint32_t ranks) {
  if (ranks == 1) return alone("direct", Collective::reduce_scatter, AddOrder::left_fold);
  Author author = pairs("direct", Collective::reduce_scatter, ranks, AddOrder::left_fold);
  author.chunks(ranks);
  author.slots(ranks - 1);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    send_each(author, ranks, rank, peers_own, kInput);
    fold_all(author, ranks, rank, rank, [](std::uint32_t k) { return k - 1; });
  }
  return author.take();
}

Program direct_all_gather(std::uint32_t ranks) {
  Author author = pairs("direct", Collective::all_gather, ranks, AddOrder::none);
  author.chunks(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    send_each(author, ranks, rank, always(rank), kInput);
    receive_each(author, ranks, rank, 0, peers_own);
    author.add(rank, author.lane(rank), copy(rank, kInput, kOutput));
  }
  return author.take();
}

Program direct_all_to_all(std::uint32_t ranks) {
  Author author = pairs("direct", Collective::all_to_all, ranks, AddOrder::none);
  author.chunks(ranks * ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    send_each(author, ranks, rank, [=](std::uint32_t peer) { return rank * ranks + peer; }, kInput);
    receive_each(author, ranks, rank, 0, [=](std::uint32_t peer) { return peer * ranks + rank; });
    author.add(rank, author.lane(rank), copy(rank * ranks + rank, kInput, kOutput));
  }
  return author.take();
}

Program flat_broadcast(std::uint32_t ranks, std::uint32_t root) {
  Author author = star("flat", Collective::broadcast, ranks, root, AddOrder::none);
  send_each(author, ranks, root, always(0), kInput);
  author.add(root, author.lane(root), copy(0, kInput, kOutput));
  for (std::uint32_t k = 1; k < ranks; ++k) {
    author.add(around(root, k, ranks), 0, receive(root, k - 1, 0, kOutput));
  }
  return author.take();
}

Program flat_scatter(std::uint32_t ranks, std::uint32_t root) {
  Author author = star("flat", Collective::scatter, ranks, root, AddOrder::none);
  author.chunks(ranks);
  send_each(author, ranks, root, peers_own, kInput);
  author.add(root, author.lane(root), copy(root, kInput, kOutput));
  for (std::uint32_t k = 1; k < ranks; ++k) {
    const std::uint32_t rank = around(root, k, ranks);
    author.add(rank, 0, receive(root, k - 1, rank, kOutput));
  }
  return author.take();
}

Program flat_gather(std::uint32_t ranks, std::uint32_t root) {
  Author author = star("flat", Collective::gather, ranks, root, AddOrder::none);
  author.chunks(ranks);
  for (std::uint32_t k = 1; k < ranks; ++k) {
    const std::uint32_t rank = around(root, -std::int64_t{k}, ranks);
    author.add(rank, 0, send(root, rank, kInput));
    author.add(root, author.lane(root), receive(rank, 0, rank, kOutput));
  }
  author.add(root, author.lane(root), copy(root, kInput, kOutput));
  return author.take();
}

Program flat_reduce(std::uint32_t ranks, std::uint32_t root) {
  if (ranks == 1) return alone("flat", Collective::reduce, AddOrder::left_fold);
  Author author = star("flat", Collective::reduce, ranks, root, AddOrder::left_fold);
  author.slots(ranks - 1);
  for (std::uint32_t k = 1; k < ranks; ++k) author.add(around(root, k, ranks), 0, send(root, 0, kInput));
  fold_all(author, ranks, root, 0, [](std::uint32_t) { return 0; });
  return author.take();
}

}  // namespace shoal::collective
