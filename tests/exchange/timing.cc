// Goal: by every way the bits of the means are a function of the plan and the gradients, not of who was quick (class D of research/sync.md 8).
// Method: several members in one process on scripted networks whose delays are drawn anew for each frame, over three orders of magnitude, while
// members begin and produce their tensors in drawn orders at drawn moments. Oracle: the run of the first network, which is nearly without delays.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "shoal/exchange/strips.h"
#include "tests/exchange/members.h"
#include "tests/exchange/normal_numbers.h"
#include "tests/from_environment.h"

namespace shoal::exchange {
namespace {

constexpr std::uint64_t kHeight = 130, kBreadth = 256, kElements = kHeight * kBreadth, kSamples = 7;
constexpr std::uint64_t kIterations = 4;  // what a lossy way keeps goes into the next
using Numbers = std::vector<float>;

// Two wide tensors, each a unit of its own, and between them two small ones that share a unit if the way packs.
ExchangePlan timed_plan(const std::string& way, std::uint32_t ranks) {
  ExchangePlan plan;
  plan.ranks = ranks;
  const auto wide = [](const char* name) {
    return TensorSpec{.name = name, .count = kElements, .rows = kSamples, .outputs = kHeight, .width = kBreadth, .touched = 20};
  };
  plan.tensors = {wide("first"), {.name = "second", .count = 301}, {.name = "third", .count = 17}, wide("last")};
  if (way.starts_with("hybrid")) plan.tensors[0].divisible = plan.tensors[3].divisible = true;
  plan.units = {{{3}, way, 4096, 3, 0, 0}, {{2, 1}, "direct", 4096, 1, 0, 0}, {{0}, way, 4096, 0, 0, 0}};
  return plan;
}

// What one member hands over; it lives until the iteration is committed.
struct Given {
  Numbers gradient, x, g;
};

const std::byte* bytes_in(const Numbers& numbers) { return reinterpret_cast<const std::byte*>(numbers.data()); }

void append_bits(std::vector<std::byte>& bits, const void* data, std::uint64_t numbers) {
  const auto* begin = static_cast<const std::byte*>(data);
  bits.insert(bits.end(), begin, begin + (data ? numbers * sizeof(float) : 0));
}

class TimedRun {
 public:
  // timing 0: hardly any delay, and one member after the other in order of production.
  TimedRun(std::string way, std::uint32_t ranks, std::uint64_t timing)
      : way_(std::move(way)),
        workers_(ranks - servers_of(way_)),
        strips_{ranks, 2, kHeight},
        drawn_(timing > 0),
        random_(timing),
        members_(timed_plan(way_, ranks), net::ScriptedNetwork{.seed = timing + 1,
                                                               .delay_min = Nanoseconds(1'000),
                                                               .delay_max = Nanoseconds(drawn_ ? 20'000'000 : 2'000)}),
        bits_(ranks) {}

  // By rank, all that it sees of the means.
  std::vector<std::vector<std::byte>> bits() {
    for (std::uint64_t iteration = 0; iteration < kIterations; ++iteration) {
      std::vector<std::pair<std::uint32_t, std::uint32_t>> moves;  // member, tensor
      for (std::uint32_t r = 0; r < members_.size(); ++r) {
        for (const std::uint32_t t : {3u, 2u, 1u, 0u}) moves.emplace_back(r, t);
      }
      if (drawn_) std::shuffle(moves.begin(), moves.end(), random_);
      std::vector<bool> has_begun(members_.size());
      given_.assign(members_.size(), std::vector<Given>(4));
      for (const auto& [r, t] : moves) {
        if (drawn_) pass_time();
        if (!has_begun[r]) members_[r].begin(r < workers_ ? 3 + r % 2 : 0);  // weights that are no powers of two
        has_begun[r] = true;
        produce(r, t, 1000 * iteration + 10 * r + t);
      }
      for (std::uint32_t r = 0; r < workers_; ++r) {  // a server adds its part and takes no mean
        for (std::uint32_t t = 0; t < 4; ++t) look_at(r, t);
      }
      for (std::uint32_t r = 0; r < members_.size(); ++r) members_[r].commit();
    }
    return bits_;
  }

 private:
  bool is_wide(std::uint32_t t) const { return t == 0 || t == 3; }
  bool is_divided(std::uint32_t t) const { return is_wide(t) && way_.starts_with("hybrid"); }

  void pass_time() {
    auto& job = members_.job();
    auto over = std::make_shared<bool>(false);
    job.at(job.now() - start_ + Nanoseconds(random_() % 10'000'000), [over] { *over = true; });
    job.run([over] { return *over; });
  }

  void produce(std::uint32_t r, std::uint32_t t, std::uint64_t seed) {
    if (r >= workers_) return members_[r].absent(t);
    auto& [gradient, x, g] = given_[r][t];
    gradient = normal_numbers(members_[r].plan().tensors[t].count, seed);
    if (is_wide(t) && way_ == "rows") std::fill(gradient.begin() + 20 * kBreadth, gradient.end(), 0.0F);
    if (members_[r].by_factors(t)) {
      x = normal_numbers(kSamples * kBreadth, ~seed);
      g = normal_numbers(kSamples * kHeight, seed + (1 << 20));
      members_[r].produced(t, factor::Pair{kSamples, bytes_in(x), bytes_in(g), bytes_in(gradient)});
    } else if (is_divided(t)) {
      g = normal_numbers(strips_.rows(strips_.place(r)) * kBreadth, ~seed);
      members_[r].produced(t, Strip{bytes_in(g), bytes_in(gradient)});
    } else {
      members_[r].produced(t, gradient.data());
    }
  }

  void look_at(std::uint32_t r, std::uint32_t t) {
    auto& bits = bits_[r];
    const std::uint64_t count = members_[r].plan().tensors[t].count;
    if (members_[r].by_factors(t)) {
      const factor::Gathered* got = members_[r].factors(t);
      ASSERT_NE(got, nullptr);
      append_bits(bits, got->x, got->total * kBreadth);
      append_bits(bits, got->g, got->total * kHeight);
      append_bits(bits, got->rest, count);
      return;
    }
    const void* got = members_[r].result(t);
    ASSERT_NE(got, nullptr);
    append_bits(bits, got, is_divided(t) ? strips_.rows(strips_.place(r)) * kBreadth : count);
  }

  const std::string way_;
  const std::uint32_t workers_;
  const Strips strips_;
  const bool drawn_;
  std::mt19937_64 random_;
  Members members_;
  const Instant start_ = members_.job().now();
  std::vector<std::vector<Given>> given_;
  std::vector<std::vector<std::byte>> bits_;
};

void expect_bits_whatever_the_timing(const std::string& way, std::uint32_t ranks) {
  const auto expected = TimedRun(way, ranks, 0).bits();
  if (!way.starts_with("hybrid")) {
    for (const auto& other : expected)
      EXPECT_TRUE(other.empty() || other == expected[0]) << way << " between " << ranks << ": a member is no replica";
  }
  for (std::uint64_t seed = 1; seed <= from_environment("SHOAL_DELAYS", 3); ++seed) {
    const auto got = TimedRun(way, ranks, seed).bits();
    for (std::uint32_t r = 0; r < ranks; ++r) {
      EXPECT_TRUE(got[r] == expected[r]) << way << " between " << ranks << ", rank " << r << ", seed " << seed
                                         << ": other bits by another timing";
    }
  }
}

TEST(Timing, exact_ways_have_the_same_bits_whoever_is_quick) {
  for (const std::uint32_t ranks : {3u, 4u}) {
    for (const std::string way :
         {"direct", "ring", "chain", "gather", "halving_doubling", "recursive_doubling", "double_binary_tree", "factors", "rows",
          "servers:1", "servers:2"}) {
      expect_bits_whatever_the_timing(way, ranks);
    }
  }
  for (const std::string way : {"swing", "grid", "hybrid:2"}) expect_bits_whatever_the_timing(way, 4);
}

TEST(Timing, lossy_ways_have_the_same_bits_whoever_is_quick) {
  for (const std::uint32_t ranks : {3u, 4u}) {
    for (const std::string way : {"bf16", "int8", "topk:0.01", "topk:0.05:0.9:2:1", "powersgd:2"})
      expect_bits_whatever_the_timing(way, ranks);
  }
}

}  // namespace
}  // namespace shoal::exchange
