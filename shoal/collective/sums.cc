#include "shoal/collective/sums.h"

#include <fmt/format.h>

#include <bit>
#include <span>
#include <vector>

namespace shoal::collective {

namespace {

struct Value {
  std::uint32_t size = 1;           // contributions
  bool complete = false;            // has been through a `completes`
  // Added one after another in rank order (N-1 is followed by 0), beginning with `first`? A single one is.
  bool in_order = true;
  std::uint32_t first = 0;
};

// One chunk at a time: its values are numbered, each with the bits of those whose contributions it has.
class Sums {
 public:
  Sums(const Unrolled& program, const Histories& histories)
      : all_(program), program_(program.program), histories_(histories), words_((program_.ranks + 63) / 64), output_(program_.ranks) {}

  void run(std::uint32_t chunk) {
    const auto history = histories_.of(chunk);
    values_.clear();
    bits_.clear();
    passed_.assign(history.size(), kNone);
    output_.assign(program_.ranks, kNone);
    for (std::uint32_t k = 0; k < history.size(); ++k) step(history[k], k, chunk);
    if (is_empty(program_, chunk)) return;
    for (std::uint32_t rank = 0; rank < program_.ranks; ++rank) {
      if (has_output(program_, rank, chunk)) check_result(rank, chunk);
    }
  }

 private:
  std::span<const std::uint64_t> from(std::uint32_t value) const { return std::span(bits_).subspan(std::size_t{value} * words_, words_); }

  std::uint32_t made(const Value& value) {
    values_.push_back(value);
    bits_.resize(bits_.size() + words_, 0);
    return static_cast<std::uint32_t>(values_.size() - 1);
  }

  void step(std::uint32_t i, std::uint32_t k, std::uint32_t chunk) {
    const Iterated& at = all_.place(i);
    std::uint32_t value = kNone, window = 0;
    const auto take = [&](std::uint32_t next) { value = value == kNone ? next : sum(i, chunk, value, next); };
    for (const Site& site : at.op->sources) {
      take(site.buffer == Buffer::scratch ? passed_[histories_.place(all_.writer_of(i, window++))] : read(i, at.rank, chunk, site.buffer));
    }
    if (receives(*at.op)) take(passed_[histories_.place(all_.instances[i].partner)]);
    if (at.op->completes) value = completed(i, chunk, value);

    if (!writes_output(*at.op)) {
      passed_[k] = value;
      return;
    }
    if (!has_output(program_, at.rank, chunk)) {
      refuse(all_, i, fmt::format("writes chunk {} to the output, where this rank has no room for it", chunk));
    }
    output_[at.rank] = value;
  }

  std::uint32_t read(std::uint32_t i, std::uint32_t rank, std::uint32_t chunk, Buffer buffer) {
    if (buffer == Buffer::output) {
      if (output_[rank] == kNone) refuse(all_, i, fmt::format("reads the output of chunk {} before it is written", chunk));
      return output_[rank];
    }
    if (!has_input(program_, rank, chunk)) refuse(all_, i, fmt::format("reads the input of chunk {}, which this rank does not have", chunk));
    const std::uint32_t value = made({1, false, true, rank});
    bits_[std::size_t{value} * words_ + rank / 64] = std::uint64_t{1} << rank % 64;
    return value;
  }

  std::uint32_t sum(std::uint32_t i, std::uint32_t chunk, std::uint32_t one, std::uint32_t other) {
    const std::uint32_t value = made({});
    const Value a = values_[one], b = values_[other];
    if (a.complete || b.complete) refuse(all_, i, fmt::format("adds to chunk {}, which is complete", chunk));
    for (std::uint32_t w = 0; w < words_; ++w) {
      if (const std::uint64_t twice = from(one)[w] & from(other)[w]; twice != 0) {
        refuse(all_, i, fmt::format("adds the contribution of rank {} to chunk {} a second time", w * 64 + static_cast<std::uint32_t>(std::countr_zero(twice)), chunk));
      }
      bits_[std::size_t{value} * words_ + w] = from(one)[w] | from(other)[w];
    }
    const auto follows = [&](const Value& single, const Value& run) {  // addition commutes, but does not associate
      return single.size == 1 && run.in_order && (run.first + run.size) % workers(program_) == single.first;
    };
    values_[value] = {a.size + b.size, false, follows(b, a) || follows(a, b), follows(b, a) ? a.first : b.first};
    return value;
  }

  std::uint32_t completed(std::uint32_t i, std::uint32_t chunk, std::uint32_t value) {
    if (values_[value].complete) refuse(all_, i, fmt::format("completes chunk {} a second time", chunk));
    const std::uint32_t missing = first_missing(value);
    if (missing < workers(program_)) {
      refuse(all_, i, fmt::format("completes chunk {} without the contribution of rank {}", chunk, missing));
    }
    const std::uint32_t whole = made(values_[value]);
    values_[whole].complete = true;
    for (std::uint32_t w = 0; w < words_; ++w) bits_[std::size_t{whole} * words_ + w] = from(value)[w];
    return whole;
  }

  std::uint32_t first_missing(std::uint32_t value) const {
    std::uint32_t w = 0;
    while (w < words_ && ~from(value)[w] == 0) ++w;
    return w == words_ ? w * 64 : w * 64 + static_cast<std::uint32_t>(std::countr_one(from(value)[w]));
  }
  std::uint32_t only(std::uint32_t value) const {
    std::uint32_t w = 0;
    while (from(value)[w] == 0) ++w;
    return w * 64 + static_cast<std::uint32_t>(std::countr_zero(from(value)[w]));
  }

  std::uint32_t source_of(std::uint32_t chunk) const {  // where nothing is added
    switch (program_.collective) {
      case Collective::broadcast: case Collective::scatter: return program_.root;
      case Collective::all_to_all: return chunk / program_.ranks;
      default: return owner(program_, chunk);
    }
  }

  void check_result(std::uint32_t rank, std::uint32_t chunk) const {
    const auto wrong = [&](const std::string& what) { refuse(program_, fmt::format("the result of rank {}, chunk {}, {}", rank, chunk, what)); };
    if (output_[rank] == kNone) wrong("is never written");
    const Value& value = values_[output_[rank]];
    if (!adds(program_.collective)) {
      const std::uint32_t got = only(output_[rank]), expected = source_of(chunk);
      if (got != expected) wrong(fmt::format("comes from rank {}, not {}", got, expected));
      return;
    }
    const std::uint32_t missing = value.complete ? workers(program_) : first_missing(output_[rank]);
    if (missing < workers(program_)) wrong(fmt::format("lacks the contribution of rank {}", missing));
    if (!value.complete) wrong("is never completed");
    if (workers(program_) < 3 || program_.order == AddOrder::tree) return;  // two are added alike either way
    const std::uint32_t first = program_.order == AddOrder::left_fold ? 0 : (owner(program_, chunk) + 1) % workers(program_);
    if (!value.in_order || value.first != first) {
      wrong(fmt::format("is not added in the declared order, {} from rank {} on", name(program_.order), first));
    }
  }

  const Unrolled& all_;
  const Program& program_;
  const Histories& histories_;
  const std::uint32_t words_;
  std::vector<Value> values_;
  std::vector<std::uint64_t> bits_;     // [value][word]
  std::vector<std::uint32_t> passed_;   // [place]: the value that a send or a write to scratch hands on
  std::vector<std::uint32_t> output_;   // [rank]: the value in its output, else kNone
};

}  // namespace

void check_sums(const Unrolled& program, const Histories& histories, std::span<const std::uint32_t> chunks) {
  Sums sums(program, histories);
  for (const std::uint32_t chunk : chunks) sums.run(chunk);
}

}  // namespace shoal::collective
