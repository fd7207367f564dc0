#include "shoal/collective/unroll.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

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
  if (!program.by_switches.empty() && program.by_switches.size() != program.chunks) {
    refuse(program, fmt::format("{} chunks, {} of which are said to pass switches or not", program.chunks, program.by_switches.size()));
  }
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

[[noreturn]] void refuse_size(const Program& program, const std::string& what) {
  throw Error(Code::unsupported, what + " when its loops are unrolled", fmt::format("program {}", program.name));
}

void check_after(const Unrolled& all, const Iterated& at) {
  for (const After& wait : at.op->after) {
    if (all.waited(at.rank, wait) == nullptr)
      refuse(all, at.first, fmt::format("waits for lane {}, op {}, which does not exist", wait.lane, wait.op));
  }
}

void make_instances(Unrolled& all) {
  for (std::uint32_t op = 0; op < all.ops.size(); ++op) {
    const Iterated& at = all.ops[op];
    for (std::uint32_t i = 0; i < at.times; ++i) all.instances[at.first + i * at.stride] = {op, chunk_of(all.program, *at.op, i), kNone};
    for (std::uint32_t i = 0; transfers(*at.op) && i < (at.op->peer_step == 0 ? std::min(at.times, 1U) : at.times); ++i) {
      if (peer_of(all.program, *at.op, i) == at.rank) refuse(all, at.first + i * at.stride, "speaks to itself");
    }
    if (at.times > 0) check_after(all, at);
  }
}

// A lane is one stream to each peer, and a stream goes one way.
void check_kinds(const Unrolled& all) {
  if (all.program.by_switches.empty()) return;
  for (std::uint32_t row = 0; row < all.rows(); ++row) {
    for (std::uint32_t i = all.row_begin[row]; i < all.row_begin[row + 1]; ++i) {
      const std::uint32_t chunk = all.instances[i].chunk, first = all.instances[all.row_begin[row]].chunk;
      if (passes_switches(all.program, chunk) == passes_switches(all.program, first)) continue;
      const std::uint32_t passing = passes_switches(all.program, chunk) ? chunk : first;
      refuse(all, i, fmt::format("speaks of chunk {}, and its lane of chunk {}: only {} passes switches", chunk, first, passing));
    }
  }
}

struct Ends {
  std::vector<std::uint32_t> in, out;  // who puts in, who takes out, in order
};

// One lane writes a window and one lane reads it, or their order would be open; and so with streams.
std::uint32_t other_lane(const Unrolled& all, const std::vector<std::uint32_t>& end, std::uint32_t instance) {
  return end.empty() || all.place(end[0]).row == all.place(instance).row ? kNone : all.place(end[0]).lane;
}

class Streams {
 public:
  explicit Streams(Unrolled& all) : all_(all), of_op_(all.ops.size(), kNone) {}

  void match() {
    for (std::uint32_t i = 0; i < all_.instances.size(); ++i) {
      const Iterated& at = all_.place(i);
      if (!transfers(*at.op)) continue;
      Ends& ends = streams_[stream(at, i)];
      if (at.op->kind == OpKind::send) {
        ends.in.push_back(i);
        continue;
      }
      if (const std::uint32_t lane = other_lane(all_, ends.out, i); lane != kNone) {
        refuse(all_, i, fmt::format("takes from rank {}, lane {}, as lane {} does, too", peer_of(all_.program, *at.op, all_.iteration(at, i)),
                                    at.op->peer_lane, lane));
      }
      ends.out.push_back(i);
    }
    for (const auto& [key, number] : numbers_) pair(key, streams_[number]);
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // from, sender's lane, to

  std::uint32_t stream(const Iterated& at, std::uint32_t instance) {
    std::uint32_t& known = of_op_[all_.instances[instance].op];
    if (at.op->peer_step == 0 && known != kNone) return known;
    const std::uint32_t peer = peer_of(all_.program, *at.op, all_.iteration(at, instance));
    const Key key = at.op->kind == OpKind::send ? Key{at.rank, at.lane, peer} : Key{peer, at.op->peer_lane, at.rank};
    const auto [found, is_new] = numbers_.try_emplace(key, static_cast<std::uint32_t>(streams_.size()));
    if (is_new) streams_.emplace_back();
    return known = found->second;
  }

  void pair(const Key& key, const Ends& ends) {
    const auto& [from, lane, to] = key;
    for (std::size_t k = 0; k < std::max(ends.in.size(), ends.out.size()); ++k) {
      if (k >= ends.in.size()) {
        refuse(all_, ends.out[k], fmt::format("receives from rank {}, lane {}, which sends it {} chunks only", from, lane, ends.in.size()));
      }
      const std::uint32_t sent = ends.in[k];
      if (k >= ends.out.size()) refuse(all_, sent, fmt::format("sends to rank {}, which never receives it", to));
      const std::uint32_t taken = ends.out[k], chunk = all_.instances[sent].chunk;
      if (chunk != all_.instances[taken].chunk) {
        refuse(all_, taken, fmt::format("receives chunk {}, but {} sends chunk {}", all_.instances[taken].chunk, words(all_, sent), chunk));
      }
      all_.instances[sent].partner = taken;
      all_.instances[taken].partner = sent;
    }
  }

  Unrolled& all_;
  std::vector<std::uint32_t> of_op_;     // the stream of an op whose peer stays the same
  std::map<Key, std::uint32_t> numbers_;
  std::vector<Ends> streams_;
};

void add_end(const Unrolled& all, std::vector<std::uint32_t>& end, std::uint32_t i, const char* verb, std::uint32_t slot) {
  if (const std::uint32_t lane = other_lane(all, end, i); lane != kNone) {
    refuse(all, i, fmt::format("{} scratch window {}, as lane {} does, too", verb, slot, lane));
  }
  end.push_back(i);
}

void pair_window(Unrolled& all, std::uint32_t slot, const Ends& ends) {
  for (std::size_t k = 0; k < std::max(ends.in.size(), ends.out.size()); ++k) {
    if (k >= ends.in.size()) refuse(all, ends.out[k], fmt::format("reads scratch window {}, in which nothing is left", slot));
    const std::uint32_t writer = ends.in[k];
    if (k >= ends.out.size()) refuse(all, writer, fmt::format("writes scratch window {}, which nobody reads", slot));
    const std::uint32_t reader = ends.out[k], wanted = all.instances[reader].chunk, chunk = all.instances[writer].chunk;
    if (chunk != wanted) {
      refuse(all, reader, fmt::format("reads chunk {} from scratch window {}, where chunk {} is next", wanted, slot, chunk));
    }
    all.reader[writer] = reader;
    if (k > 0) all.earlier_write[writer] = ends.in[k - 1];
    const Iterated& at = all.place(reader);
    std::uint32_t window = 0;
    for (const Site& site : at.op->sources) {
      if (site.buffer != Buffer::scratch) continue;
      if (site.slot == slot) all.writers[at.first_read + all.iteration(at, reader) * at.windows + window] = writer;
      ++window;
    }
  }
}

void match_windows(Unrolled& all) {
  if (all.program.slots == 0) return;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Ends> windows;  // (rank, slot)
  for (std::uint32_t i = 0; i < all.instances.size(); ++i) {
    const Iterated& at = all.place(i);
    for (const Site& site : at.op->sources) {
      if (site.buffer == Buffer::scratch) add_end(all, windows[{at.rank, site.slot}].out, i, "reads", site.slot);
    }
    if (writes_scratch(*at.op)) add_end(all, windows[{at.rank, at.op->target.slot}].in, i, "writes", at.op->target.slot);
  }
  if (windows.empty()) return;
  all.reader.assign(all.instances.size(), kNone);
  all.earlier_write.assign(all.instances.size(), kNone);
  for (const auto& [key, ends] : windows) pair_window(all, key.second, ends);
}

}  // namespace

std::string words(const Unrolled& all, std::uint32_t instance) {
  const Iterated& at = all.place(instance);
  return fmt::format("rank {}, lane {}, op {}, iteration {}", at.rank, at.lane, at.number, all.iteration(at, instance));
}

void refuse(const Program& program, const std::string& what) {
  throw Error(Code::invalid_argument, what, fmt::format("program {} of {} ranks", program.name, program.ranks));
}

void refuse(const Unrolled& all, std::uint32_t instance, const std::string& what) {
  refuse(all.program, fmt::format("{}: {}", words(all, instance), what));
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

LaidOut lay_out(const Program& program) {
  check_frame(program);
  LaidOut all{program, {}, {}, {}, {}};
  std::uint64_t total = 0, reads = 0;
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    all.first_row.push_back(static_cast<std::uint32_t>(all.row_op.size()));
    for (std::uint32_t lane = 0; lane < program.lanes[rank].size(); ++lane) {
      const auto row = static_cast<std::uint32_t>(all.row_op.size());
      all.row_op.push_back(static_cast<std::uint32_t>(all.ops.size()));
      all.row_begin.push_back(static_cast<std::uint32_t>(total));
      std::uint32_t number = 0;
      for (const Loop& loop : program.lanes[rank][lane]) {
        const std::uint64_t size = loop.ops.size(), first = total;
        total += size * loop.times;
        if (total > kMaxLaidOut) refuse_size(program, fmt::format("more than {} ops", kMaxLaidOut));
        for (std::uint32_t op = 0; op < size; ++op, ++number) {
          check_op(program, place(rank, lane, number), loop.ops[op]);
          const auto windows = static_cast<std::uint32_t>(
              std::ranges::count_if(loop.ops[op].sources, [](const Site& site) { return site.buffer == Buffer::scratch; }));
          all.ops.push_back({&loop.ops[op], rank, lane, number, row, static_cast<std::uint32_t>(first + op),
                             static_cast<std::uint32_t>(size), loop.times, windows, static_cast<std::uint32_t>(reads)});
          reads += std::uint64_t{windows} * loop.times;
        }
        if (reads > kMaxInstances) refuse_size(program, fmt::format("more than {} reads of scratch windows", kMaxInstances));
      }
    }
  }
  all.row_op.push_back(static_cast<std::uint32_t>(all.ops.size()));
  all.row_begin.push_back(static_cast<std::uint32_t>(total));
  all.reads = static_cast<std::uint32_t>(reads);
  return all;
}

Unrolled unmatched(const Program& program) {
  Unrolled all{lay_out(program), {}, {}, {}, {}};
  if (all.size() > kMaxInstances) refuse_size(program, fmt::format("more than {} ops", kMaxInstances));
  all.instances.resize(all.size());
  all.writers.assign(all.reads, kNone);
  make_instances(all);
  check_kinds(all);
  return all;
}

Unrolled unroll(const Program& program) {
  Unrolled all = unmatched(program);
  Streams(all).match();
  match_windows(all);
  return all;
}

}  // namespace shoal::collective
