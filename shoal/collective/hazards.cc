#include "shoal/collective/hazards.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "shoal/collective/happens_before.h"

namespace shoal::collective {

namespace {

constexpr const char* kWhat[] = {"reads a scratch window", "reads the output", "writes the output"};
enum About : std::uint32_t { reads_window, reads_output, overwrites };

// Which accesses to one chunk's places must be in order: every access but a read after the last write. Any order of the chunk's
// instances would do: two that nothing orders are found one way or the other.
class Accesses {
 public:
  Accesses(const Unrolled& program, bool one_memory) : all_(program), one_memory_(one_memory), places_(program.program.ranks) {}

  // Returns false where the input is read after it was written over (one memory only).
  bool of(std::span<const std::uint32_t> history, const std::vector<const Iterated*>& ops, const Histories& histories,
          std::vector<Question>& questions) {
    bool input_lasts = true;
    for (std::uint32_t k = 0; k < history.size() && input_lasts; ++k) input_lasts = add(history[k], *ops[k], k, histories, questions);
    for (const Iterated* at : ops) {
      places_[at->rank].written = kNone;
      places_[at->rank].read.clear();
    }
    return input_lasts;
  }

 private:
  struct Place {
    std::uint32_t written = kNone;
    std::vector<std::uint32_t> read;  // since it was written
  };

  bool add(std::uint32_t i, const Iterated& at, std::uint32_t k, const Histories& histories, std::vector<Question>& questions) {
    const Op& op = *at.op;
    if (one_memory_ && op.kind == OpKind::copy && op.sources[0].buffer != Buffer::scratch && op.target.buffer == Buffer::output) return true;
    Place& place = places_[at.rank];
    std::uint32_t window = 0;
    bool reads = false;
    for (const Site& site : op.sources) {
      if (site.buffer == Buffer::scratch) {
        if (!one_memory_) questions.push_back({histories.place(all_.writer_of(i, window)), k, reads_window});
        ++window;
        continue;
      }
      if (site.buffer == Buffer::input && !one_memory_) continue;  // nobody writes it
      reads = true;
      if (place.written == kNone) continue;
      if (site.buffer == Buffer::input) return false;
      questions.push_back({place.written, k, reads_output});
    }
    if (writes_output(op)) {
      if (place.written != kNone) questions.push_back({place.written, k, overwrites});
      for (const std::uint32_t reader : place.read) questions.push_back({reader, k, overwrites});
      place.written = k;
      place.read.clear();
    } else if (reads) {
      place.read.push_back(k);  // one that writes has its turn as the writer
    }
    return true;
  }

  const Unrolled& all_;
  const bool one_memory_;
  std::vector<Place> places_;  // [rank]
};

}  // namespace

bool check_hazards(const Unrolled& all, const Histories& histories, std::span<const std::uint32_t> chunks) {
  const Collective collective = all.program.collective;
  bool one_memory = collective == Collective::all_reduce || collective == Collective::reduce || collective == Collective::broadcast;
  HappensBefore order(all, histories);
  Accesses apart(all, false), together(all, true);
  std::vector<Question> questions;
  std::vector<const Iterated*> ops;
  for (const std::uint32_t chunk : chunks) {
    const auto history = histories.of(chunk);
    ops.clear();
    for (const std::uint32_t i : history) ops.push_back(&all.place(i));
    order.look_at(chunk);
    questions.clear();
    apart.of(history, ops, histories, questions);
    if (const auto no = order.refuted(questions)) {
      refuse(all, history[no->later], fmt::format("{} of chunk {}, but nothing makes it wait for {}", kWhat[no->about], chunk,
                                                  words(all, history[no->earlier])));
    }
    questions.clear();
    one_memory = one_memory && together.of(history, ops, histories, questions) && !order.refuted(questions);
  }
  return one_memory;
}

}  // namespace shoal::collective
