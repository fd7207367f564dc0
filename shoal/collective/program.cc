#include "shoal/collective/program.h"

namespace shoal::collective {

const char* name(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return "all_reduce";
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::all_gather: return "all_gather";
    case Collective::broadcast: return "broadcast";
    case Collective::reduce: return "reduce";
    case Collective::gather: return "gather";
    case Collective::scatter: return "scatter";
    case Collective::all_to_all: return "all_to_all";
  }
  return "?";
}

std::optional<Collective> collective_called(const std::string& text) {
  const auto plain = [](std::string word) {
    std::erase_if(word, [](char c) { return c == '_' || c == '-'; });
    return word;
  };
  for (const Collective collective : kCollectives) {
    if (plain(name(collective)) == plain(text)) return collective;
  }
  return std::nullopt;
}

const char* name(AddOrder order) {
  switch (order) {
    case AddOrder::none: return "none";
    case AddOrder::left_fold: return "left_fold";
    case AddOrder::rotated: return "rotated";
    case AddOrder::tree: return "tree";
  }
  return "?";
}

const char* name(OpKind kind) {
  switch (kind) {
    case OpKind::send: return "send";
    case OpKind::receive: return "receive";
    case OpKind::receive_reduce: return "receive_reduce";
    case OpKind::fold: return "fold";
    case OpKind::copy: return "copy";
  }
  return "?";
}

const char* name(Buffer buffer) {
  switch (buffer) {
    case Buffer::input: return "input";
    case Buffer::output: return "output";
    case Buffer::scratch: return "scratch";
  }
  return "?";
}

std::uint32_t owner(const Program& program, std::uint32_t chunk) {
  switch (program.collective) {
    case Collective::broadcast:
    case Collective::reduce: return program.root;
    default: return chunk % program.ranks;
  }
}

bool adds(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter || collective == Collective::reduce;
}

bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather || collective == Collective::scatter;
}

bool in_parts(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::all_gather || collective == Collective::gather ||
         collective == Collective::scatter;
}

std::uint32_t workers(const Program& program) { return program.ranks - program.servers; }

std::uint32_t peer_of(const Program& program, const Op& op, std::uint32_t iteration) {
  const std::int64_t ranks = program.ranks, peer = op.peer + std::int64_t{op.peer_step} * iteration;
  return static_cast<std::uint32_t>((peer % ranks + ranks) % ranks);
}

std::uint32_t chunk_of(const Program& program, const Op& op, std::uint32_t iteration) {
  const std::int64_t chunks = program.chunks, chunk = op.chunk + std::int64_t{op.chunk_step} * iteration;
  return static_cast<std::uint32_t>((chunk % chunks + chunks) % chunks);
}

}  // namespace shoal::collective
