#include "shoal/collective/by_symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "shoal/collective/happens_before.h"
#include "shoal/collective/hazards.h"
#include "shoal/collective/parts.h"
#include "shoal/collective/sums.h"
#include "shoal/collective/symmetry.h"
#include "shoal/collective/unroll.h"
#include "shoal/collective/waits.h"
#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

constexpr std::size_t kMostForms = 8;  // of chunks, kept to compare with

// The ranks that stand for others, matched as if each class were one rank.
class Representatives {
 public:
  Representatives(const LaidOut& all, const Orbits& orbits)
      : all_(all),
        orbits_(orbits),
        program_(with_lanes(all.program, [&](std::uint32_t rank, std::uint32_t) { return orbits.ranks[rank] == rank; })),
        few_(unmatched(program_)) {}

  void check() {
    for (std::uint32_t rank = 0; rank < all_.program.ranks; ++rank) {
      if (orbits_.ranks[rank] == rank) match(rank);
    }
    for (std::uint32_t i = 0; i < few_.instances.size(); ++i) {
      if (receives(few_.op(i)) && few_.instances[i].partner == kNone) refuse(few_, i, "receives what nobody sends");
    }
    order_of(few_);
  }

 private:
  struct Place {  // of an instance, at whatever rank of a class
    std::uint32_t lane = 0, place = 0, chunk = 0;
  };
  using Taken = std::map<std::uint32_t, std::vector<Place>>;  // by sender's lane, in order

  // What `rank` receives of `from`.
  Taken taken(std::uint32_t rank, std::uint32_t from) const {
    Taken streams;
    for (std::uint32_t lane = 0; lane < all_.program.lanes[rank].size(); ++lane) {
      const std::uint32_t row = all_.first_row[rank] + lane;
      std::map<std::uint32_t, std::vector<Place>> of_lane;
      for (const Iterated& at : all_.of_row(row)) {
        if (!receives(*at.op)) continue;
        if (at.op->peer_step == 0 && at.op->peer != from) continue;
        Cyclic peers = Cyclic::peers(all_.program, *at.op, 0), chunks = Cyclic::chunks(all_.program, *at.op, 0);
        for (std::uint32_t i = 0; i < at.times; ++i) {
          const Place place{lane, at.first + i * at.stride - all_.row_begin[row], chunks.next()};
          if (peers.next() == from) of_lane[at.op->peer_lane].push_back(place);
        }
      }
      for (auto& [sender, places] : of_lane) {
        std::ranges::sort(places, {}, &Place::place);  // the ops of a loop take turns
        auto& stream = streams[sender];
        stream.insert(stream.end(), places.begin(), places.end());
      }
    }
    return streams;
  }

  // All that a representative sends.
  void match(std::uint32_t rank) {
    std::map<std::uint32_t, Taken> by_peer;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> sent;  // to whom by which lane, so far
    for (std::uint32_t lane = 0; lane < program_.lanes[rank].size(); ++lane) {
      const std::uint32_t row = few_.first_row[rank] + lane;
      for (std::uint32_t i = few_.row_begin[row]; i < few_.row_begin[row + 1]; ++i) {
        if (few_.op(i).kind != OpKind::send) continue;
        const std::uint32_t to = peer_of(program_, few_.op(i), few_.iteration(few_.place(i), i));
        const auto [known, is_new] = by_peer.try_emplace(to);
        if (is_new) known->second = taken(to, rank);
        const std::vector<Place>& places = known->second[lane];
        const std::size_t k = sent[{to, lane}]++;
        if (k >= places.size()) refuse(few_, i, fmt::format("sends to rank {}, which never receives it", to));
        if (places[k].lane != places[0].lane) refuse(few_, i, fmt::format("sends to rank {}, two of whose lanes take it", to));
        if (places[k].chunk != few_.instances[i].chunk) {
          refuse(
              few_, i,
              fmt::format("sends chunk {} to rank {}, which receives chunk {}", few_.instances[i].chunk, to, places[k].chunk));
        }
        join(i, few_.row_begin[few_.first_row[orbits_.ranks[to]] + places[k].lane] + places[k].place);
      }
    }
    for (const auto& [to, streams] : by_peer) {
      for (const auto& [lane, places] : streams) {
        if (sent[{to, lane}] < places.size())
          refuse(all_.program, fmt::format("rank {} receives more from rank {}, lane {}, than it sends", to, rank, lane));
      }
    }
  }

  void join(std::uint32_t send, std::uint32_t receive) {
    if (few_.instances[receive].partner != kNone && few_.instances[receive].partner != send)
      refuse(few_, receive, "receives what two send");
    few_.instances[send].partner = receive;
    few_.instances[receive].partner = send;
  }

  const LaidOut& all_;
  const Orbits& orbits_;
  const Program program_;
  Unrolled few_;
};

// All ops on the chunks that stand for others.
class OnChunks {
 public:
  OnChunks(const LaidOut& all, std::vector<std::uint32_t> chunks)
      : all_(all),
        frame_(with_lanes(all.program, [](std::uint32_t, std::uint32_t) { return false; })),
        chunks_(std::move(chunks)),
        ops_(chunks_.size()) {
    std::vector<std::uint32_t> number(all.program.chunks, kNone);
    for (std::uint32_t k = 0; k < chunks_.size(); ++k) number[chunks_[k]] = k;
    check_lengths(number);
    for (std::uint32_t op = 0; op < all.ops.size(); ++op) {
      Cyclic next = Cyclic::chunks(all.program, *all.ops[op].op, 0);
      for (std::uint32_t i = 0; i < all.ops[op].times; ++i) {
        const std::uint32_t k = number[next.next()];
        if (k != kNone) ops_[k].push_back({op, i, all.ops[op].first + i * all.ops[op].stride});
      }
    }
    for (auto& ops : ops_) std::ranges::sort(ops, {}, &Kept::instance);
  }

  bool check() {
    bool in_place = true;
    std::deque<std::vector<std::uint32_t>> seen;
    for (std::size_t k = 0; k < chunks_.size(); ++k) {
      std::vector<std::uint32_t> written = form(k);
      if (!written.empty() && std::ranges::find(seen, written) != seen.end()) continue;
      in_place = is_right(k) && in_place;
      if (seen.size() == kMostForms) seen.pop_front();
      seen.push_back(std::move(written));
    }
    return in_place;
  }

 private:
  struct Kept {  // one iteration of one op
    std::uint32_t op, iteration, instance;
  };

  // Before any is kept: a few lines of a file may say very many ops.
  void check_lengths(const std::vector<std::uint32_t>& number) const {
    std::vector<std::uint32_t> length(chunks_.size());
    std::uint64_t whole = 0;
    for (const Iterated& at : all_.ops) {
      Cyclic next = Cyclic::chunks(all_.program, *at.op, 0);
      for (std::uint32_t i = 0; i < at.times; ++i) {
        const std::uint32_t k = number[next.next()];
        if (k == kNone) continue;
        if (++length[k] > kMaxOfChunk || ++whole > kMaxInstances) {
          throw Error(Code::unsupported, fmt::format("more than {} ops on chunk {}, or {} in all", kMaxOfChunk, chunks_[k], kMaxInstances),
                      fmt::format("program {}", all_.program.name));
        }
      }
    }
  }

  bool is_right(std::size_t k) const {
    const Program program = alone(k);
    const Unrolled unrolled = unroll(program);
    const Histories histories(unrolled, order_of(unrolled));
    const std::span<const std::uint32_t> chunk(&chunks_[k], 1);
    const bool in_place = check_hazards(unrolled, histories, chunk);
    check_sums(unrolled, histories, chunk);
    return in_place;
  }

  // visit(index in ops_[k]) for every op on this chunk that one of them waits for.
  template <typename Visit>
  void each_wait(std::size_t k, const Kept& kept, Visit visit) const {
    const Iterated& at = all_.ops[kept.op];
    for (const After& wait : at.op->after) {
      const Iterated* const waited = all_.waited(at.rank, wait);
      const std::uint32_t instance = waited == nullptr ? kNone : LaidOut::instance_of(*waited, kept.iteration, wait);
      const auto found = std::ranges::lower_bound(ops_[k], instance, {}, &Kept::instance);
      if (instance != kNone && found != ops_[k].end() && found->instance == instance)
        visit(static_cast<std::uint32_t>(found - ops_[k].begin()));
    }
  }
  std::uint32_t first_from(std::size_t k, std::uint32_t instance) const {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(ops_[k], instance, {}, &Kept::instance) - ops_[k].begin());
  }

  Program alone(std::size_t k) const {
    Program program = frame_;
    for (const Kept& kept : ops_[k]) {
      const Iterated& at = all_.ops[kept.op];
      Op op = *at.op;
      if (transfers(op)) op.peer = peer_of(all_.program, op, kept.iteration);
      op.peer_step = 0;
      op.chunk = chunks_[k];
      op.chunk_step = 0;
      op.after.clear();
      each_wait(k, kept, [&](std::uint32_t earlier) {
        const Iterated& waited = all_.ops[ops_[k][earlier].op];
        op.after.push_back({waited.lane, earlier - first_from(k, all_.row_begin[waited.row]), 0});
      });
      Loop loop;
      loop.ops.push_back(std::move(op));
      program.lanes[at.rank][at.lane].push_back(std::move(loop));
    }
    return program;
  }

  // The same ops with ranks numbered as one comes to them from the one that completes the chunk: who is called what is left out, and nothing else that a proof asks for. So of two
  // chunks with one form one proof does. Empty where that is not all: where ranks are owners or have an order, or not all are come to.
  std::vector<std::uint32_t> form(std::size_t k) const {
    const Program& program = all_.program;
    const auto whole = std::ranges::find_if(ops_[k], [&](const Kept& kept) { return all_.ops[kept.op].op->completes; });
    if (program.order != AddOrder::tree || whole == ops_[k].end()) return {};
    std::vector<std::uint32_t> number(program.ranks, kNone), come_to{all_.ops[whole->op].rank},
        words{is_empty(program, chunks_[k])};
    number[come_to[0]] = 0;
    std::size_t written = 0;
    for (std::size_t next = 0; next < come_to.size(); ++next) {
      const std::uint32_t first = first_from(k, all_.row_begin[all_.first_row[come_to[next]]]);
      for (std::uint32_t at = first; at < ops_[k].size() && all_.ops[ops_[k][at].op].rank == come_to[next]; ++at, ++written) {
        const Kept& kept = ops_[k][at];
        const Op& op = *all_.ops[kept.op].op;
        const auto add = [&](auto word) { words.push_back(static_cast<std::uint32_t>(word)); };
        add(static_cast<std::uint32_t>(next));
        add(all_.ops[kept.op].lane);
        add(op.kind);
        add(op.completes);
        if (transfers(op)) {
          const std::uint32_t peer = peer_of(program, op, kept.iteration);
          if (number[peer] == kNone) number[peer] = static_cast<std::uint32_t>(come_to.size()), come_to.push_back(peer);
          add(number[peer]);
        }
        if (receives(op)) add(op.peer_lane);
        for (const Site& site : op.sources)
          add(site.buffer);  // as many as the kind has but of a fold, whose end the next word is
        add(kNone);
        if (op.kind != OpKind::send) add(op.target.buffer);
        each_wait(k, kept, [&](std::uint32_t earlier) { add(earlier - first); });
        add(kNone);
      }
    }
    return written == ops_[k].size() ? words : std::vector<std::uint32_t>{};
  }

  const LaidOut& all_;
  const Program frame_;
  const std::vector<std::uint32_t> chunks_;
  std::vector<std::vector<Kept>> ops_;  // by chunk: in the order of instances
};

}  // namespace

std::optional<bool> proved_by_symmetry(const Program& program, std::span<const std::uint32_t> chunks) {
  const LaidOut all = lay_out(program);
  const Orbits orbits = orbits_of(all);
  if (!orbits.are_classes) return {};
  Representatives(all, orbits).check();
  std::vector<std::uint32_t> standing;
  std::ranges::copy_if(chunks, std::back_inserter(standing),
                       [&](std::uint32_t chunk) { return orbits.chunks[chunk] == chunk; });
  return OnChunks(all, std::move(standing)).check();
}

}  // namespace shoal::collective
