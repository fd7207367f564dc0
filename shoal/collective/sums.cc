#include "shoal/collective/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <unordered_map>

namespace shoal::collective {

namespace {

struct Value {
  std::vector<std::uint32_t> from;  // whose contributions, ascending
  bool complete = false;            // has been through a `completes`
  // Added one after another in rank order (N-1 is followed by 0), beginning with `first`? A single one is.
  bool in_order = true;
  std::uint32_t first = 0;
};
using ValuePtr = std::shared_ptr<const Value>;

class Sums {
 public:
  explicit Sums(const Unrolled& program)
      : all_(program), program_(program.program), passed_(program.instances.size()) {}

  void step(std::uint32_t i) {
    const Instance& at = all_.instances[i];
    std::vector<ValuePtr> values;
    for (std::size_t s = 0; s < at.op->sources.size(); ++s) values.push_back(read(i, s));
    if (at.op->kind == OpKind::receive || at.op->kind == OpKind::receive_reduce) {
      values.push_back(std::move(passed_[all_.partner[i]]));
    }
    ValuePtr value = values[0];
    for (std::size_t v = 1; v < values.size(); ++v) value = sum(at, *value, *values[v]);
    if (at.op->completes) value = completed(at, *value);

    if (at.op->kind == OpKind::send || at.op->target.buffer == Buffer::scratch) {
      passed_[i] = std::move(value);
    } else {
      if (!has_output(program_, at.rank, at.chunk)) {
        refuse(program_, at, fmt::format("writes chunk {} to the output, where this rank has no room for it", at.chunk));
      }
      output_[key(at.rank, at.chunk)] = std::move(value);
    }
  }

  void check_results() const {
    for (std::uint32_t rank = 0; rank < program_.ranks; ++rank) {
      for (std::uint32_t chunk = 0; chunk < program_.chunks; ++chunk) {
        if (has_output(program_, rank, chunk) && !is_empty(program_, chunk)) check_result(rank, chunk);
      }
    }
  }

 private:
  std::uint64_t key(std::uint32_t rank, std::uint32_t chunk) const { return std::uint64_t{rank} * program_.chunks + chunk; }

  ValuePtr read(std::uint32_t i, std::size_t source) {
    const Instance& at = all_.instances[i];
    switch (at.op->sources[source].buffer) {
      case Buffer::input: break;
      case Buffer::scratch: return std::move(passed_[all_.writer[i][source]]);
      case Buffer::output: {
        const auto found = output_.find(key(at.rank, at.chunk));
        if (found == output_.end()) refuse(program_, at, fmt::format("reads the output of chunk {} before it is written", at.chunk));
        return found->second;
      }
    }
    if (!has_input(program_, at.rank, at.chunk)) {
      refuse(program_, at, fmt::format("reads the input of chunk {}, which this rank does not have", at.chunk));
    }
    return std::make_shared<const Value>(Value{{at.rank}, false, true, at.rank});
  }

  ValuePtr sum(const Instance& at, const Value& a, const Value& b) const {
    if (a.complete || b.complete) refuse(program_, at, fmt::format("adds to chunk {}, which is complete", at.chunk));
    Value both;
    std::merge(a.from.begin(), a.from.end(), b.from.begin(), b.from.end(), std::back_inserter(both.from));
    const auto twice = std::adjacent_find(both.from.begin(), both.from.end());
    if (twice != both.from.end()) {
      refuse(program_, at, fmt::format("adds the contribution of rank {} to chunk {} a second time", *twice, at.chunk));
    }
    const auto follows = [&](const Value& one, const Value& run) {  // addition commutes, but does not associate
      return one.from.size() == 1 && run.in_order && (run.first + run.from.size()) % workers(program_) == one.first;
    };
    both.in_order = follows(b, a) || follows(a, b);
    both.first = follows(b, a) ? a.first : b.first;
    return std::make_shared<const Value>(std::move(both));
  }

  ValuePtr completed(const Instance& at, const Value& value) const {
    if (value.complete) refuse(program_, at, fmt::format("completes chunk {} a second time", at.chunk));
    const std::uint32_t missing = first_missing(value);
    if (missing < workers(program_)) {
      refuse(program_, at, fmt::format("completes chunk {} without the contribution of rank {}", at.chunk, missing));
    }
    Value whole = value;
    whole.complete = true;
    return std::make_shared<const Value>(std::move(whole));
  }

  std::uint32_t first_missing(const Value& value) const {
    std::uint32_t rank = 0;
    while (rank < value.from.size() && value.from[rank] == rank) ++rank;
    return rank;
  }

  std::uint32_t source_of(std::uint32_t chunk) const {  // where nothing is added
    switch (program_.collective) {
      case Collective::broadcast: case Collective::scatter: return program_.root;
      case Collective::all_to_all: return chunk / program_.ranks;
      default: return owner(program_, chunk);
    }
  }

  void check_result(std::uint32_t rank, std::uint32_t chunk) const {
    const std::string result = fmt::format("the result of rank {}, chunk {}", rank, chunk);
    const auto found = output_.find(key(rank, chunk));
    if (found == output_.end()) refuse(program_, result + ", is never written");
    const Value& value = *found->second;
    if (!adds(program_.collective)) {
      const std::uint32_t from = source_of(chunk);
      if (value.from != std::vector{from}) refuse(program_, fmt::format("{}, comes from rank {}, not {}", result, value.from[0], from));
      return;
    }
    const std::uint32_t missing = first_missing(value);
    if (missing < workers(program_)) refuse(program_, fmt::format("{}, lacks the contribution of rank {}", result, missing));
    if (!value.complete) refuse(program_, result + ", is never completed");
    if (workers(program_) < 3 || program_.order == AddOrder::tree) return;  // two are added alike either way
    const std::uint32_t first = program_.order == AddOrder::left_fold ? 0 : (owner(program_, chunk) + 1) % workers(program_);
    if (!value.in_order || value.first != first) {
      refuse(program_, fmt::format("{}, is not added in the declared order, {} from rank {} on", result, name(program_.order), first));
    }
  }

  const Unrolled& all_;
  const Program& program_;
  std::vector<ValuePtr> passed_;  // [instance]: what a send or a write to scratch hands on, until it is taken
  std::unordered_map<std::uint64_t, ValuePtr> output_;
};

}  // namespace

void check_sums(const Unrolled& program, const std::vector<Moment>& order) {
  Sums sums(program);
  for (const Moment& moment : order) {
    if (moment.done && moment.slice == 0) sums.step(moment.instance);  // all slices of a chunk fare alike
  }
  sums.check_results();
}

}  // namespace shoal::collective
