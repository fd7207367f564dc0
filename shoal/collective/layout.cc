#include "shoal/collective/layout.h"

namespace shoal::collective {
namespace {

// `parts` nearly equal parts of `total`: the first ones have one more.
std::uint64_t part(std::uint64_t total, std::uint64_t parts, std::uint64_t index) {
  return total / parts + (index < total % parts ? 1 : 0);
}

// The counts of chunks first, first + step, ..., which share `total`.
void cut(const Program& program, std::uint64_t total, std::uint32_t first, std::uint32_t step, std::vector<std::uint64_t>& count) {
  if (program.shares.empty()) {
    const std::uint32_t chunks = program.chunks / step;
    for (std::uint32_t k = 0; k < chunks; ++k) count[first + k * step] = part(total, chunks, k);
    return;
  }
  std::uint64_t all = 0, before = 0, begin = 0;
  for (std::uint32_t chunk = first; chunk < program.chunks; chunk += step) all += program.shares[chunk];
  for (std::uint32_t chunk = first; chunk < program.chunks; chunk += step) {
    before += program.shares[chunk];
    const auto end = static_cast<std::uint64_t>(static_cast<unsigned __int128>(total) * before / all);
    count[chunk] = end - begin;
    begin = end;
  }
}

}  // namespace

Layout Layout::even(const Program& program, std::uint32_t rank, std::uint64_t total) {
  const std::uint32_t chunks = program.chunks, ranks = program.ranks;
  Layout layout;
  layout.count.resize(chunks);
  layout.input.assign(chunks, 0);
  layout.output.assign(chunks, 0);
  if (program.collective == Collective::all_to_all) {
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) layout.count[chunk] = part(total, ranks, chunk % ranks);
    for (std::uint32_t other = 1; other < ranks; ++other) {
      layout.input[rank * ranks + other] = layout.input[rank * ranks + other - 1] + layout.count[other - 1];
      layout.output[other * ranks + rank] = other * layout.count[rank];
    }
    return layout;
  }
  const Collective kind = program.collective;
  const bool own_input = kind == Collective::all_gather || kind == Collective::gather;
  const bool own_output = kind == Collective::reduce_scatter || kind == Collective::scatter;
  const std::uint32_t wholes = in_parts(kind) ? ranks : 1;
  std::uint64_t begin = 0;
  for (std::uint32_t whole = 0; whole < wholes; ++whole) {
    cut(program, part(total, wholes, whole), whole, wholes, layout.count);
    const std::uint64_t own = begin;
    for (std::uint32_t chunk = whole; chunk < chunks; chunk += wholes) {
      layout.input[chunk] = own_input ? begin - own : begin;
      layout.output[chunk] = own_output ? begin - own : begin;
      begin += layout.count[chunk];
    }
  }
  return layout;
}

std::uint64_t elements_sent(const Program& program, const Layout& layout, std::uint32_t rank) {
  std::uint64_t elements = 0;
  for (const Lane& lane : program.lanes[rank]) {
    for (const Loop& loop : lane) {
      for (const Op& op : loop.ops) {
        if (op.kind != OpKind::send) continue;
        for (std::uint32_t i = 0; i < loop.times; ++i) elements += layout.count[chunk_of(program, op, i)];
      }
    }
  }
  return elements;
}

}  // namespace shoal::collective
