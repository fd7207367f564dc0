#include "shoal/collective/show.h"

#include <fmt/format.h>

namespace shoal::collective {

namespace {

// "3", "3-i", "3+2i"
std::string with_step(std::uint32_t first, std::int32_t step) {
  if (step == 0) return fmt::format("{}", first);
  const std::int64_t size = step < 0 ? -std::int64_t{step} : step;
  return fmt::format("{}{}{}i", first, step < 0 ? '-' : '+', size == 1 ? "" : fmt::format("{}", size));
}

std::string counted(std::uint32_t count, const char* what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

std::string site(const Site& site) {
  return site.buffer == Buffer::scratch ? fmt::format("window {}", site.slot) : name(site.buffer);
}

std::string movement(const Op& op) {
  std::string from;
  for (const Site& source : op.sources) from += (from.empty() ? "" : " + ") + site(source);
  const std::string peer = fmt::format("rank {}", with_step(op.peer, op.peer_step));
  switch (op.kind) {
    case OpKind::send: return fmt::format("{} -> {}", from, peer);
    case OpKind::receive: return fmt::format("{} lane {} -> {}", peer, op.peer_lane, site(op.target));
    case OpKind::receive_reduce: return fmt::format("{} + {} lane {} -> {}", from, peer, op.peer_lane, site(op.target));
    case OpKind::fold: case OpKind::copy: break;
  }
  return fmt::format("{} -> {}", from, site(op.target));
}

std::string notes(const Op& op) {
  std::string text = op.completes ? "  completes" : "";
  for (std::size_t k = 0; k < op.after.size(); ++k) {
    const After& after = op.after[k];
    text += fmt::format("{}{}.{}", k == 0 ? "  after " : ", ", after.lane, after.op);
    if (after.shift != 0) text += fmt::format("[i{:+}]", after.shift);
  }
  return text;
}

std::string show_lane(std::uint32_t number, const Lane& lane) {
  std::string text;
  std::uint32_t op_number = 0;
  for (const Loop& loop : lane) {
    for (std::size_t k = 0; k < loop.ops.size(); ++k, ++op_number) {
      const Op& op = loop.ops[k];
      const std::string title = op_number == 0 ? fmt::format("lane {}", number) : "";
      const std::string times = loop.times == 1 ? "" : k == 0 ? fmt::format("{}x", loop.times) : "|";
      const std::string line = fmt::format("  {:<9}{:>3} {:<6}{:<16}chunk {:<8}{:<34}{}", title, op_number, times, name(op.kind),
                                           with_step(op.chunk, op.chunk_step), movement(op), notes(op));
      text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    }
  }
  return text;
}

}  // namespace

std::string show(const Program& program) {
  std::string text = fmt::format("{}: {} of {}, {}", program.name, name(program.collective), counted(program.ranks, "rank"),
                                 counted(program.chunks, "chunk"));
  if (program.root != 0) text += fmt::format(", root {}", program.root);
  if (program.order != AddOrder::none) text += fmt::format(", adds {}", name(program.order));
  text += '\n';
  for (std::uint32_t rank = 0; rank < program.lanes.size(); ++rank) {
    text += fmt::format("rank {}\n", rank);
    for (std::uint32_t lane = 0; lane < program.lanes[rank].size(); ++lane) text += show_lane(lane, program.lanes[rank][lane]);
  }
  return text;
}

}  // namespace shoal::collective
