#include "shoal/collective/unroll.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

bool receives(const Op& op) { return op.kind == OpKind::receive || op.kind == OpKind::receive_reduce; }
bool transfers(const Op& op) { return op.kind == OpKind::send || receives(op); }

std::string place(std::uint32_t rank, std::uint32_t lane, std::uint32_t op) {
  return fmt::format("rank {}, lane {}, op {}", rank, lane, op);
}

void check_chunks(const Program& program) {
  const auto refuse_count = [&](const std::string& needed) {
    refuse(program, fmt::format("{} chunks; {} of {} ranks has {}", program.chunks, name(program.collective), program.ranks, needed));
  };
  if (program.chunks < 1) refuse(program, "no chunk");
  const std::uint32_t all = program.ranks * program.ranks;
  if (program.collective == Collective::all_to_all && program.chunks != all) refuse_count(std::to_string(all));
  if (in_parts(program.collective) && program.chunks % program.ranks != 0) refuse_count(fmt::format("{} or a multiple", program.ranks));
  if (program.shares.empty()) return;
  if (program.collective == Collective::all_to_all) refuse(program, "shares of chunks in all_to_all, whose chunks are equal");
  if (program.shares.size() != program.chunks) refuse(program, fmt::format("{} shares of {} chunks", program.shares.size(), program.chunks));
  const std::uint32_t wholes = in_parts(program.collective) ? program.ranks : 1;
  for (std::uint32_t whole = 0; whole < wholes; ++whole) {
    std::uint64_t sum = 0;
    for (std::uint32_t chunk = whole; chunk < program.chunks; chunk += wholes) sum += program.shares[chunk];
    if (sum == 0) refuse(program, fmt::format("the chunks of part {} have no share", whole));
  }
}

void check_frame(const Program& program) {
  if (program.ranks < 1 || program.ranks > kMaxRanks) {
    refuse(program, fmt::format("{} ranks; 1 to {} are allowed", program.ranks, kMaxRanks));
  }
  if (program.lanes.size() != program.ranks) {
    refuse(program, fmt::format("lanes of {} ranks in a program of {}", program.lanes.size(), program.ranks));
  }
  if (program.root >= program.ranks) refuse(program, fmt::format("root {} of {} ranks", program.root, program.ranks));
  if (program.servers > 0 && (program.collective != Collective::all_reduce || program.servers >= program.ranks)) {
    refuse(program, fmt::format("{} servers in {} of {} ranks", program.servers, name(program.collective), program.ranks));
  }
  check_chunks(program);
  if (adds(program.collective) == (program.order == AddOrder::none)) {
    refuse(program, fmt::format("order of addition \"{}\" for {}", name(program.order), name(program.collective)));
  }
}

void check_site(const Program& program, const std::string& where, const Site& site, bool target) {
  if (site.buffer == Buffer::scratch && site.slot >= program.slots) {
    refuse(program, fmt::format("{}: scratch window {} of {}", where, site.slot, program.slots));
  }
  if (target && site.buffer == Buffer::input) refuse(program, where + ": writes the input");
}

void check_op(const Program& program, const std::string& where, const Op& op) {
  const std::size_t sources = op.sources.size();
  const bool fits = op.kind == OpKind::receive ? sources == 0 : op.kind == OpKind::fold ? sources >= 1 : sources == 1;
  if (!fits) refuse(program, fmt::format("{}: {} with {} sources", where, name(op.kind), sources));
  if (op.chunk >= program.chunks) refuse(program, fmt::format("{}: chunk {} of {}", where, op.chunk, program.chunks));
  if (transfers(op) && op.peer >= program.ranks) refuse(program, fmt::format("{}: peer {} of {}", where, op.peer, program.ranks));
  if (receives(op) && op.peer_step == 0 && op.peer_lane >= program.lanes[op.peer].size()) {
    refuse(program, fmt::format("{}: lane {} of rank {}, which has {}", where, op.peer_lane, op.peer, program.lanes[op.peer].size()));
  }
  std::set<std::uint32_t> windows;
  for (const Site& site : op.sources) {
    check_site(program, where, site, false);
    if (site.buffer == Buffer::scratch && !windows.insert(site.slot).second) {
      refuse(program, fmt::format("{}: reads scratch window {} twice", where, site.slot));
    }
  }
  if (op.kind != OpKind::send) check_site(program, where, op.target, true);
  if (op.completes && (op.kind == OpKind::send || op.kind == OpKind::receive)) {
    refuse(program, fmt::format("{}: a {} cannot complete a chunk", where, name(op.kind)));
  }
  if (op.completes && !adds(program.collective)) refuse(program, where + ": completes a chunk, but nothing is added");
  if (!adds(program.collective) && (op.kind == OpKind::receive_reduce || op.kind == OpKind::fold)) {
    refuse(program, fmt::format("{}: {} in {}, where nothing is added", where, name(op.kind), name(program.collective)));
  }
}

// Where the iterations of one op lie among the instances.
struct OpRange {
  std::uint32_t first, step, times;
};
using Lanes = std::vector<std::vector<std::vector<OpRange>>>;  // [rank][lane][op]

Lanes lay_out(const Program& program) {
  Lanes lanes(program.ranks);
  std::uint64_t total = 0;
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    for (const Lane& lane : program.lanes[rank]) {
      auto& ranges = lanes[rank].emplace_back();
      for (const Loop& loop : lane) {
        const std::uint64_t size = loop.ops.size(), first = total;
        total += size * loop.times;
        if (total > kMaxInstances) {
          throw Error(Code::unsupported, fmt::format("more than {} ops when its loops are unrolled", kMaxInstances),
                      fmt::format("program {}", program.name));
        }
        for (std::uint64_t op = 0; op < size; ++op) {
          ranges.push_back({static_cast<std::uint32_t>(first + op), static_cast<std::uint32_t>(size), loop.times});
        }
      }
    }
  }
  return lanes;
}

void make_instances(Unrolled& all) {
  const Program& program = all.program;
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    for (std::uint32_t lane = 0; lane < program.lanes[rank].size(); ++lane) {
      std::uint32_t first_op = 0;
      for (const Loop& loop : program.lanes[rank][lane]) {
        for (std::uint32_t op = 0; op < loop.ops.size(); ++op) check_op(program, place(rank, lane, first_op + op), loop.ops[op]);
        for (std::uint32_t i = 0; i < loop.times; ++i) {
          for (std::uint32_t op = 0; op < loop.ops.size(); ++op) {
            const Op& body = loop.ops[op];
            const Instance made{&body, rank, lane, first_op + op, i, peer_of(program, body, i), chunk_of(program, body, i)};
            if (transfers(body) && made.peer == rank) refuse(program, made, "speaks to itself");
            all.instances.push_back(made);
          }
        }
        first_op += static_cast<std::uint32_t>(loop.ops.size());
      }
    }
  }
}

void resolve_after(Unrolled& all, const Lanes& lanes) {
  all.after.resize(all.instances.size());
  for (std::size_t i = 0; i < all.instances.size(); ++i) {
    const Instance& at = all.instances[i];
    for (const After& wait : at.op->after) {
      const auto& mine = lanes[at.rank];
      if (wait.lane >= mine.size() || wait.op >= mine[wait.lane].size()) {
        refuse(all.program, at, fmt::format("waits for lane {}, op {}, which does not exist", wait.lane, wait.op));
      }
      const OpRange& range = mine[wait.lane][wait.op];
      const std::int64_t iteration = std::int64_t{at.iteration} + wait.shift;
      if (iteration < 0 || iteration >= range.times) continue;
      all.after[i].push_back(range.first + range.step * static_cast<std::uint32_t>(iteration));
    }
  }
}

struct Ends {
  std::vector<std::uint32_t> in, out;  // who puts in, who takes out, in order
};

void match_streams(Unrolled& all) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Ends> streams;  // (from, sender's lane, to)
  for (std::uint32_t i = 0; i < all.instances.size(); ++i) {
    const Instance& at = all.instances[i];
    if (at.op->kind == OpKind::send) streams[{at.rank, at.lane, at.peer}].in.push_back(i);
    if (!receives(*at.op)) continue;
    Ends& ends = streams[{at.peer, at.op->peer_lane, at.rank}];
    if (!ends.out.empty() && all.instances[ends.out[0]].lane != at.lane) {
      refuse(all.program, at, fmt::format("takes from rank {}, lane {}, as lane {} does, too", at.peer, at.op->peer_lane,
                                          all.instances[ends.out[0]].lane));
    }
    ends.out.push_back(i);
  }
  all.partner.assign(all.instances.size(), kNone);
  for (const auto& [stream, ends] : streams) {
    const auto& [from, lane, to] = stream;
    for (std::size_t k = 0; k < std::max(ends.in.size(), ends.out.size()); ++k) {
      if (k >= ends.in.size()) {
        refuse(all.program, all.instances[ends.out[k]],
               fmt::format("receives from rank {}, lane {}, which sends it {} chunks only", from, lane, ends.in.size()));
      }
      const Instance& sent = all.instances[ends.in[k]];
      if (k >= ends.out.size()) refuse(all.program, sent, fmt::format("sends to rank {}, which never receives it", to));
      const Instance& taken = all.instances[ends.out[k]];
      if (sent.chunk != taken.chunk) {
        refuse(all.program, taken, fmt::format("receives chunk {}, but {} sends chunk {}", taken.chunk, place(sent), sent.chunk));
      }
      all.partner[ends.in[k]] = ends.out[k];
      all.partner[ends.out[k]] = ends.in[k];
    }
  }
}

// One lane writes a window and one lane reads it, or their order would be open.
void add_end(const Unrolled& all, std::vector<std::uint32_t>& end, std::uint32_t i, const char* verb, std::uint32_t slot) {
  const Instance& at = all.instances[i];
  if (!end.empty() && all.instances[end[0]].lane != at.lane) {
    refuse(all.program, at, fmt::format("{} scratch window {}, as lane {} does, too", verb, slot, all.instances[end[0]].lane));
  }
  end.push_back(i);
}

void match_windows(Unrolled& all) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Ends> windows;  // (rank, slot)
  for (std::uint32_t i = 0; i < all.instances.size(); ++i) {
    const Instance& at = all.instances[i];
    for (const Site& site : at.op->sources) {
      if (site.buffer == Buffer::scratch) add_end(all, windows[{at.rank, site.slot}].out, i, "reads", site.slot);
    }
    if (at.op->kind != OpKind::send && at.op->target.buffer == Buffer::scratch) {
      add_end(all, windows[{at.rank, at.op->target.slot}].in, i, "writes", at.op->target.slot);
    }
  }
  all.reader.assign(all.instances.size(), kNone);
  all.earlier_write.assign(all.instances.size(), kNone);
  all.writer.resize(all.instances.size());
  for (std::size_t i = 0; i < all.instances.size(); ++i) all.writer[i].assign(all.instances[i].op->sources.size(), kNone);
  for (const auto& [key, ends] : windows) {
    const std::uint32_t slot = key.second;
    for (std::size_t k = 0; k < std::max(ends.in.size(), ends.out.size()); ++k) {
      if (k >= ends.in.size()) {
        refuse(all.program, all.instances[ends.out[k]], fmt::format("reads scratch window {}, in which nothing is left", slot));
      }
      const Instance& writer = all.instances[ends.in[k]];
      if (k >= ends.out.size()) refuse(all.program, writer, fmt::format("writes scratch window {}, which nobody reads", slot));
      const Instance& reader = all.instances[ends.out[k]];
      if (writer.chunk != reader.chunk) {
        refuse(all.program, reader, fmt::format("reads chunk {} from scratch window {}, where chunk {} is next", reader.chunk, slot, writer.chunk));
      }
      all.reader[ends.in[k]] = ends.out[k];
      if (k > 0) all.earlier_write[ends.in[k]] = ends.in[k - 1];
      const auto& sources = reader.op->sources;
      for (std::size_t s = 0; s < sources.size(); ++s) {
        if (sources[s] == Site{Buffer::scratch, slot}) all.writer[ends.out[k]][s] = ends.in[k];
      }
    }
  }
}

}  // namespace

std::string place(const Instance& at) {
  return fmt::format("rank {}, lane {}, op {}, iteration {}", at.rank, at.lane, at.number, at.iteration);
}

void refuse(const Program& program, const std::string& what) {
  throw Error(Code::invalid_argument, what, fmt::format("program {} of {} ranks", program.name, program.ranks));
}

void refuse(const Program& program, const Instance& at, const std::string& what) {
  refuse(program, fmt::format("{}: {}", place(at), what));
}

bool has_input(const Program& program, std::uint32_t rank, std::uint32_t chunk) {
  switch (program.collective) {
    case Collective::broadcast: case Collective::scatter: return rank == program.root;
    case Collective::all_gather: case Collective::gather: return rank == owner(program, chunk);
    case Collective::all_to_all: return rank == chunk / program.ranks;
    default: return rank < workers(program);
  }
}

bool has_output(const Program& program, std::uint32_t rank, std::uint32_t chunk) {
  switch (program.collective) {
    case Collective::reduce: case Collective::gather: return rank == program.root;
    case Collective::reduce_scatter: case Collective::scatter: return rank == owner(program, chunk);
    case Collective::all_to_all: return rank == chunk % program.ranks;
    default: return rank < workers(program) || rank == owner(program, chunk);
  }
}

Unrolled unroll(const Program& program) {
  check_frame(program);
  const Lanes lanes = lay_out(program);
  Unrolled all{program, {}, {}, {}, {}, {}, {}};
  make_instances(all);
  resolve_after(all, lanes);
  match_streams(all);
  match_windows(all);
  return all;
}

}  // namespace shoal::collective
