#include "shoal/collective/parts.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "shoal/collective/classes.h"

namespace shoal::collective {

namespace {

class Parts {
 public:
  explicit Parts(const LaidOut& all)
      : all_(all), program_(all.program), together_(all.rows()), speaker_(program_.chunks, kNone) {
    for (const Iterated& at : all.ops) join_lanes(at);
    for (const Iterated& at : all.ops) join_speakers(at);
  }

  std::vector<ProgramPart> take() {
    std::vector<ProgramPart> parts;
    std::vector<std::uint32_t> number(all_.rows(), kNone);  // [row that stands for its part]
    for (std::uint32_t row = 0; row < all_.rows(); ++row) {
      std::uint32_t& part = number[together_.find(row)];
      if (part == kNone) part = static_cast<std::uint32_t>(parts.size()), parts.emplace_back();
      parts[part].rows.push_back(row);
      parts[part].instances += all_.row_begin[row + 1] - all_.row_begin[row];
    }
    for (std::uint32_t chunk = 0; chunk < program_.chunks && !parts.empty(); ++chunk) {
      parts[speaker_[chunk] == kNone ? 0 : number[together_.find(speaker_[chunk])]].chunks.push_back(chunk);
    }
    return parts;
  }

 private:
  void join_lanes(const Iterated& at) {
    if (at.times == 0) return;
    for (const After& wait : at.op->after) {
      if (const Iterated* const other = all_.waited(at.rank, wait)) together_.join(at.row, other->row);
    }
    const auto share_window = [&](const Site& site) {
      if (site.buffer != Buffer::scratch) return;
      const auto [known, is_new] = windows_.try_emplace(std::uint64_t{at.rank} << 32 | site.slot, at.row);
      if (!is_new) together_.join(at.row, known->second);
    };
    for (const Site& site : at.op->sources) share_window(site);
    if (writes_scratch(*at.op)) share_window(at.op->target);
    if (!receives(*at.op)) return;  // whoever receives names both ends
    Cyclic peers = Cyclic::peers(program_, *at.op, 0);
    for (std::uint32_t i = 0; i < (at.op->peer_step == 0 ? 1 : at.times); ++i) {
      const std::uint32_t peer = peers.next();
      if (at.op->peer_lane < program_.lanes[peer].size()) together_.join(at.row, all_.first_row[peer] + at.op->peer_lane);
    }
  }

  void join_speakers(const Iterated& at) {
    Cyclic chunks = Cyclic::chunks(program_, *at.op, 0);
    std::uint32_t own = together_.find(at.row);
    for (std::uint32_t i = 0; i < at.times; ++i) {
      std::uint32_t& speaker = speaker_[chunks.next()];
      if (speaker == own) continue;
      if (speaker != kNone) own = together_.join(speaker, own);
      speaker = own;
    }
  }

  const LaidOut& all_;
  const Program& program_;
  Classes together_;  // lanes
  std::unordered_map<std::uint64_t, std::uint32_t> windows_;  // (rank, slot): a lane that has to do with it
  std::vector<std::uint32_t> speaker_;                        // [chunk]: a lane that speaks of it, else kNone
};

}  // namespace

std::vector<ProgramPart> parts_of(const LaidOut& program) { return Parts(program).take(); }

namespace {

std::vector<ProgramPart> together(std::vector<ProgramPart> parts, std::uint32_t enough) {
  std::vector<ProgramPart> few;
  std::uint32_t open = kNone;  // which of them has room
  for (ProgramPart& part : parts) {
    if (part.instances > enough || open == kNone || few[open].instances + part.instances > enough) {
      if (part.instances <= enough) open = static_cast<std::uint32_t>(few.size());
      few.push_back(std::move(part));
      continue;
    }
    ProgramPart& joined = few[open];
    joined.rows.insert(joined.rows.end(), part.rows.begin(), part.rows.end());
    joined.chunks.insert(joined.chunks.end(), part.chunks.begin(), part.chunks.end());
    joined.instances += part.instances;
  }
  for (ProgramPart& part : few) std::ranges::sort(part.chunks);
  return few;
}

Program without_lanes(const Program& program) {
  Program frame = program;
  frame.lanes.clear();
  return frame;
}

Program with_lanes_of(Program frame, const Program& program, const std::function<bool(std::uint32_t, std::uint32_t)>& keep) {
  for (std::uint32_t rank = 0; rank < program.lanes.size(); ++rank) {
    frame.lanes.emplace_back(program.lanes[rank].size());
    for (std::uint32_t lane = 0; lane < program.lanes[rank].size(); ++lane) {
      if (keep(rank, lane)) frame.lanes[rank][lane] = program.lanes[rank][lane];
    }
  }
  return frame;
}

}  // namespace

void each_part(const LaidOut& all, std::uint32_t enough, const std::function<void(const ProgramPart&, const Program&)>& visit) {
  const std::vector<ProgramPart> parts = together(parts_of(all), enough);
  const Program frame = without_lanes(all.program);
  std::vector<std::uint32_t> part_of(all.rows());
  for (std::uint32_t k = 0; k < parts.size(); ++k) {
    for (const std::uint32_t row : parts[k].rows) part_of[row] = k;
  }
  for (std::uint32_t k = 0; k < parts.size(); ++k) {
    visit(parts[k], with_lanes_of(frame, all.program, [&](std::uint32_t rank, std::uint32_t lane) {
            return part_of[all.first_row[rank] + lane] == k;
          }));
  }
}

Program with_lanes(const Program& program, const std::function<bool(std::uint32_t, std::uint32_t)>& keep) {
  return with_lanes_of(without_lanes(program), program, keep);
}

}  // namespace shoal::collective
