#include "shoal/collective/hazards.h"

#include <fmt/format.h>

#include <vector>

#include "shoal/collective/happens_before.h"

namespace shoal::collective {

namespace {

constexpr const char* kWhat[] = {"reads a scratch window", "reads the output", "writes the output"};
enum About : std::uint32_t { reads_window, reads_output, writes_output_chunk };

// Which accesses to one chunk's places must be in order: every access but a read after the last write. Places in a history; any order
// of its instances would do, since all that nothing orders are found one way or the other.
class Accesses {
 public:
  Accesses(const Unrolled& program, bool in_place) : all_(program), in_place_(in_place), places_(program.program.ranks) {}

  // Returns false where the input is read after it was written over (in_place only).
  bool of(std::span<const std::uint32_t> history, const Histories& histories, std::vector<Question>& questions) {
    bool input_lasts = true;
    for (std::uint32_t k = 0; k < history.size() && input_lasts; ++k) input_lasts = add(history[k], k, histories, questions);
    for (const std::uint32_t i : history) places_[all_.place(i).rank] = {};
    return input_lasts;
  }

 private:
  struct Place {
    std::uint32_t written = kNone;
    std::vector<std::uint32_t> read;  // since it was written
  };

  bool add(std::uint32_t i, std::uint32_t k, const Histories& histories, std::vector<Question>& questions) {
    const Iterated& at = all_.place(i);
    const Op& op = *at.op;
    if (in_place_ && op.kind == OpKind::copy && op.sources[0].buffer != Buffer::scratch && op.target.buffer == Buffer::output) return true;
    Place& place = places_[at.rank];
    std::uint32_t window = 0;
    bool reads = false;
    for (const Site& site : op.sources) {
      if (site.buffer == Buffer::scratch) {
        questions.push_back({histories.place(all_.writer_of(i, window++)), k, reads_window});
        continue;
      }
      if (site.buffer == Buffer::input && !in_place_) continue;  // nobody writes it
      reads = true;
      if (place.written == kNone) continue;
      if (site.buffer == Buffer::input) return false;
      questions.push_back({place.written, k, reads_output});
    }
    if (writes_output(op)) {
      if (place.written != kNone) questions.push_back({place.written, k, writes_output_chunk});
      for (const std::uint32_t reader : place.read) questions.push_back({reader, k, writes_output_chunk});
      place = {k, {}};
    } else if (reads) {
      place.read.push_back(k);  // one that writes has its turn as the writer
    }
    return true;
  }

  const Unrolled& all_;
  const bool in_place_;
  std::vector<Place> places_;  // [rank]
};

}  // namespace

bool check_hazards(const Unrolled& all, const Histories& histories) {
  const Collective collective = all.program.collective;
  bool in_place = collective == Collective::all_reduce || collective == Collective::reduce || collective == Collective::broadcast;
  HappensBefore order(all, histories);
  Accesses apart(all, false), together(all, true);
  std::vector<Question> questions;
  for (std::uint32_t chunk = 0; chunk < all.program.chunks; ++chunk) {
    const auto history = histories.of(chunk);
    questions.clear();
    apart.of(history, histories, questions);
    for (const Question& open : order.not_along(chunk, questions)) {
      const std::uint32_t earlier = history[open.earlier], later = history[open.later];
      if (order.known(earlier, later)) continue;
      refuse(all, later, fmt::format("{} of chunk {}, but nothing makes it wait for {}", kWhat[open.about], chunk, words(all, earlier)));
    }
    if (!in_place) continue;
    questions.clear();
    in_place = together.of(history, histories, questions);
    if (!in_place) continue;
    for (const Question& open : order.not_along(chunk, questions)) {
      in_place = in_place && order.known(history[open.earlier], history[open.later]);
    }
  }
  return in_place;
}

}  // namespace shoal::collective
