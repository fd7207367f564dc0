// What the runner's tests share: a group of members on a scripted network, each with its part of one collective, and
// the answer by plain loops over (contributor, chunk, element).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "shoal/collective/build.h"
#include "shoal/collective/run.h"
#include "shoal/collective/verify.h"
#include "shoal/core/seed.h"
#include "shoal/net/inproc.h"

namespace shoal::collective {

// Whose input of chunk c counts, and whose output has it afterwards.
inline bool contributes(const Program& program, std::uint32_t rank, std::uint32_t chunk) {
  switch (program.collective) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
    case Collective::reduce: return true;
    case Collective::all_gather:
    case Collective::gather: return rank == owner(program, chunk);
    case Collective::broadcast:
    case Collective::scatter: return rank == program.root;
    case Collective::all_to_all: return rank == chunk / program.ranks;
  }
  return false;
}
inline bool obtains(const Program& program, std::uint32_t rank, std::uint32_t chunk) {
  switch (program.collective) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::broadcast: return true;
    case Collective::reduce:
    case Collective::gather: return rank == program.root;
    case Collective::reduce_scatter:
    case Collective::scatter: return rank == owner(program, chunk);
    case Collective::all_to_all: return rank == chunk % program.ranks;
  }
  return false;
}

// Elements of T: `value(rank, chunk, element)` is what a member contributes.
template <class T>
struct Part {
  Layout layout;
  std::vector<T> input, output;
  bool one_memory = false;
  int done = 0;
  net::Failure why;
  Buffers buffers() {
    // Memory that a member has no business with does not exist: touching it would crash.
    if (one_memory) return {reinterpret_cast<const std::byte*>(output.data()), reinterpret_cast<std::byte*>(output.data())};
    return {input.empty() ? nullptr : reinterpret_cast<const std::byte*>(input.data()),
            output.empty() ? nullptr : reinterpret_cast<std::byte*>(output.data())};
  }
};

template <class T>
class Exercise {
 public:
  template <class Value>
  Exercise(const Program& program, std::uint64_t total, Value value) : program_(program), parts_(program.ranks) {
    for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
      Part<T>& part = parts_[rank];
      part.layout = Layout::even(program, rank, total);
      for (std::uint32_t chunk = 0; chunk < program.chunks; ++chunk) {
        const std::uint64_t count = part.layout.count[chunk];
        if (contributes(program, rank, chunk)) grow(part.input, part.layout.input[chunk] + count);
        if (obtains(program, rank, chunk)) grow(part.output, part.layout.output[chunk] + count);
        if (!contributes(program, rank, chunk)) continue;
        for (std::uint64_t k = 0; k < count; ++k)
          part.input[part.layout.input[chunk] + k] = static_cast<T>(value(rank, chunk, k));
      }
    }
    inputs_.resize(program.ranks);
    for (std::uint32_t rank = 0; rank < program.ranks; ++rank) inputs_[rank] = parts_[rank].input;
  }

  Part<T>& part(std::uint32_t rank) { return parts_[rank]; }
  const Program& program() const { return program_; }

  void start(Runner& runner, const Verified& verified, const Run& run) {
    Part<T>& part = parts_[runner.rank()];
    runner.start(verified, part.layout, part.buffers(), run, [&part](const net::Failure& why) {
      ++part.done;
      part.why = why;
    });
  }
  // From here on the contribution lies where the result will (all_reduce, reduce, broadcast).
  void use_one_memory() {
    for (Part<T>& part : parts_) {
      part.one_memory = true;
      part.output = part.input;
      part.output.resize(std::accumulate(part.layout.count.begin(), part.layout.count.end(), std::size_t{0}));
    }
  }
  bool all_done() const {
    return std::all_of(parts_.begin(), parts_.end(), [](const Part<T>& part) { return part.done > 0; });
  }

  // `add(contributions in rank order, chunk)` is the oracle of one element.
  template <class Add>
  void expect_right(Add add) const {
    for (std::uint32_t rank = 0; rank < program_.ranks; ++rank) expect_right(rank, add);
  }
  template <class Add>
  void expect_right(std::uint32_t rank, Add add) const {
    const Part<T>& part = parts_[rank];
    ASSERT_EQ(part.done, 1) << "rank " << rank;
    ASSERT_FALSE(part.why) << "rank " << rank << ": " << part.why->what();
    ASSERT_EQ(part.input, inputs_[rank]) << "rank " << rank << ": the input was written";
    std::vector<const T*> begins;  // of the chunk, in each contribution
    std::vector<T> given;
    for (std::uint32_t chunk = 0; chunk < program_.chunks; ++chunk) {
      if (!obtains(program_, rank, chunk)) continue;
      begins.clear();
      for (std::uint32_t from = 0; from < program_.ranks; ++from) {
        if (contributes(program_, from, chunk)) begins.push_back(inputs_[from].data() + parts_[from].layout.input[chunk]);
      }
      for (std::uint64_t k = 0; k < part.layout.count[chunk]; ++k) {
        given.clear();
        for (const T* const begin : begins) given.push_back(begin[k]);
        const T expected = add(given, chunk), got = part.output[part.layout.output[chunk] + k];
        ASSERT_EQ(std::memcmp(&expected, &got, sizeof(T)), 0)
            << "rank " << rank << ", chunk " << chunk << ", element " << k << ": " << +got << " instead of " << +expected;
      }
    }
  }

 private:
  static void grow(std::vector<T>& vector, std::uint64_t size) {
    vector.resize(std::max<std::size_t>(vector.size(), size), T{});
  }

  const Program& program_;
  std::vector<Part<T>> parts_;
  std::vector<std::vector<T>> inputs_;
};

struct ScriptedGroup {
  explicit ScriptedGroup(std::uint32_t ranks, const net::ScriptedNetwork& network = {}) : job(ranks, network) {
    std::vector<net::Rank> members(ranks);
    std::iota(members.begin(), members.end(), 0);
    for (net::Rank rank = 0; rank < ranks; ++rank) runners.push_back(std::make_unique<Runner>(job.member(rank), members));
  }
  net::InprocJob job;
  std::vector<std::unique_ptr<Runner>> runners;
};

struct Builder {
  Collective collective;
  std::string name;
};
inline std::string title(const Builder& builder) { return std::string(name(builder.collective)) + "_" + builder.name; }
inline std::string title_of(const testing::TestParamInfo<Builder>& tested) { return title(tested.param); }
inline std::vector<Builder> all_builders() {
  std::vector<Builder> all;
  for (const Collective collective : kCollectives) {
    for (const std::string& name : builder_names(collective)) all.push_back({collective, name});
  }
  return all;
}

inline const auto sum_in_rank_order = [](const auto& given, std::uint32_t) {
  auto sum = given[0];
  for (std::size_t i = 1; i < given.size(); ++i) sum = static_cast<std::decay_t<decltype(sum)>>(sum + given[i]);
  return sum;
};

// Small whole numbers, different for every contributor and element.
inline int small_number(std::uint32_t rank, std::uint32_t chunk, std::uint64_t k) {
  return static_cast<int>((rank * 5 + chunk * 3 + k * 7) % 13) - 6;
}

// Proved, and run by members that begin at unequal times: every one of them ends with the exact sums or copies of whole numbers.
inline void expect_runs(const Program& program, std::uint64_t total, std::uint64_t seed) {
  const Verified verified = verify(program);
  ScriptedGroup group(program.ranks, {.seed = seed, .eager = 4096});
  Exercise<std::int32_t> exercise(program, total, small_number);
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    collective::Run run;
    run.type = DType::i32;
    run.slice_bytes = 64;
    run.operation = 1;
    group.job.at(std::chrono::microseconds(random_words(seed, rank, 0, 1)[0] % 900),
                 [&, rank, run] { exercise.start(*group.runners[rank], verified, run); });
  }
  ASSERT_TRUE(group.job.run());
  exercise.expect_right(sum_in_rank_order);
}

}  // namespace shoal::collective
