// Members on a scripted network that add together, operation after operation, while faults strike. What must hold of every operation: all
// survivors have the sum over the same contributors, exactly, with the same bits; or all have an error, and their inputs as they were.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "shoal/net/inproc.h"
#include "tests/collective/summing.h"

namespace shoal::collective {

struct SurvivingScript {
  net::Rank members = 4;
  std::string builder = "direct";
  std::uint64_t count = 300;           // int32 elements
  int operations = 3;
  bool in_place = false;
  std::uint64_t seed = 1;
  Nanoseconds patience = std::chrono::seconds(30);
  Nanoseconds pause{};                 // between a member's operations, longer for higher ranks
};

// A sum as a work of the survivors on the loop: all members of a scripted network share one thread, and joint.h is for those that have one each.
class SumWork final : public Work, public std::enable_shared_from_this<SumWork> {
 public:
  using Summed = std::function<void(const net::Failure&, const std::vector<net::Rank>& contributors)>;
  SumWork(Summing summing, std::vector<std::int32_t>& input, std::vector<std::int32_t>& output, std::string label, Summed done)
      : summing_(std::move(summing)),
        input_(input),
        output_(output),
        sums_(input.size()),
        label_(std::move(label)),
        done_(std::move(done)) {}

  void begin(const Attempt& attempt, net::Done held) override {
    attempt_ = attempt;
    sum_.emplace(summing_, attempt, input_.size(), label_);
    attempt.runner->start(*sum_->program, sum_->layout, buffers(input_, sums_), sum_->run,
                          [self = shared_from_this(), held = std::move(held)](const net::Failure& why) { held(why); });
  }
  void stop(const net::Failure& why) override { attempt_.runner->end(why); }
  void committed(const std::vector<net::Rank>& contributors) override {
    output_ = sums_;
    let_go()(nullptr, contributors);
  }
  void failed(const net::Failure& why) override { let_go()(why, {}); }

  // A member that was killed never hears how it ends, and the runner that it has holds it.
  Summed let_go() {
    attempt_.runner.reset();
    return std::exchange(done_, nullptr);
  }

 private:
  const Summing summing_;
  std::vector<std::int32_t>&input_, &output_;  // may be one
  std::vector<std::int32_t> sums_;  // aside: the input stays until all have them
  const std::string label_;
  Summed done_;
  Attempt attempt_;
  std::optional<Sum> sum_;
};

class SurvivingMembers {
 public:
  static constexpr std::uint16_t kChannel = 7;

  explicit SurvivingMembers(const SurvivingScript& script)
      : script_(script), job(script.members, {.seed = script.seed, .on_peer_lost = net::OnPeerLost::shrink, .eager = 1024}), told_(script.members) {
    std::vector<net::Rank> all(script.members);
    std::iota(all.begin(), all.end(), net::Rank{0});
    for (net::Rank rank = 0; rank < script.members; ++rank) {
      groups_.push_back(std::make_unique<Survivors>(job.member(rank), all, kChannel));
      told_[rank].reserve(static_cast<std::size_t>(script.operations));
      job.member(rank).post([this, rank] { next(rank); });
    }
  }

  static std::int32_t value(net::Rank rank, int operation, std::uint64_t k) {
    return static_cast<std::int32_t>((1u << rank) * 1000u + static_cast<std::uint32_t>(operation) * 17u + k % 7);
  }

  struct Told {
    std::vector<std::int32_t> input, output;
    int times = 0;
    net::Failure why;
    std::vector<net::Rank> contributors;
    Instant began{}, ended{};
  };

  ~SurvivingMembers() {
    closing_ = true;
    groups_.clear();
    for (const auto& work : works_) {
      if (const auto open = work.lock()) open->let_go();
    }
  }

  // A member that nothing is to be expected of any more.
  void count_out(net::Rank rank) { out_.insert(rank); }
  bool survives(net::Rank rank) const { return !out_.contains(rank) && !job.member(rank).failure(); }
  const std::vector<Told>& told(net::Rank rank) const { return told_[rank]; }
  std::vector<net::Rank> group_of(net::Rank rank) const { return groups_[rank]->members(); }

  void run() { ASSERT_TRUE(job.run()); }

  // Counts what was committed without some member, and what failed.
  void expect_all_or_nothing() {
    std::vector<net::Rank> survivors;
    for (net::Rank rank = 0; rank < script_.members; ++rank) {
      if (survives(rank)) survivors.push_back(rank);
    }
    ASSERT_FALSE(survivors.empty());
    for (int operation = 0; operation < script_.operations; ++operation) {
      SCOPED_TRACE("operation " + std::to_string(operation));
      const auto o = static_cast<std::size_t>(operation);
      const Told* first = nullptr;
      for (const net::Rank rank : survivors) {
        SCOPED_TRACE("rank " + std::to_string(rank));
        ASSERT_EQ(told_[rank].size(), static_cast<std::size_t>(script_.operations)) << "it stands still";
        const Told& told = told_[rank][o];
        ASSERT_EQ(told.times, 1);
        if (!first) first = &told;
        // Silence is found after 5 s and told for 1 s; faults lie within the first.
        EXPECT_LE(told.ended - told.began, std::max<Nanoseconds>(script_.patience, std::chrono::seconds(6)) + std::chrono::milliseconds(500));
        ASSERT_EQ(told.why != nullptr, first->why != nullptr) << (told.why ? told.why->what() : "the first failed");
        if (told.why) {
          if (!script_.in_place) continue;
          for (std::uint64_t k = 0; k < script_.count; ++k) ASSERT_EQ(told.output[k], value(rank, operation, k)) << "the input was written";
          continue;
        }
        expect_sum(told, operation, survivors);
        ASSERT_EQ(told.contributors, first->contributors);
        ASSERT_TRUE(told.output == first->output);
      }
      failed_ += first->why != nullptr;
      shrunk_ += !first->why && first->contributors.size() < script_.members;
    }
  }
  int failed() const { return failed_; }
  int shrunk() const { return shrunk_; }

 private:
  const SurvivingScript script_;

 public:
  mutable net::InprocJob job;

 private:
  void next(net::Rank rank) {
    const int operation = static_cast<int>(told_[rank].size());
    if (operation == script_.operations) return;
    Told& told = told_[rank].emplace_back();
    told.input.resize(script_.count);
    for (std::uint64_t k = 0; k < script_.count; ++k) told.input[k] = value(rank, operation, k);
    told.output = script_.in_place ? told.input : std::vector<std::int32_t>(script_.count, -1);
    told.began = job.now();
    const std::string label = "sum " + std::to_string(operation);
    const auto summed = [this, rank, &told](const net::Failure& why, const std::vector<net::Rank>& contributors) {
      ++told.times;
      told.why = why;
      told.contributors = contributors;
      told.ended = job.now();
      if (closing_ || job.member(rank).failure()) return;
      if (script_.pause == Nanoseconds(0)) return next(rank);
      job.member(rank).at(job.now() + (rank + 1) * script_.pause, [this, rank] { next(rank); });
    };
    const auto work = std::make_shared<SumWork>(Summing{script_.builder, script_.members}, script_.in_place ? told.output : told.input, told.output, label, summed);
    works_.push_back(work);
    groups_[rank]->start(work, 1, script_.patience, label);
  }

  void expect_sum(const Told& told, int operation, const std::vector<net::Rank>& survivors) {
    std::set<net::Rank> contributors;
    for (const net::Rank one : told.contributors) ASSERT_TRUE(contributors.insert(one).second);
    for (const net::Rank rank : survivors)
      ASSERT_TRUE(contributors.contains(rank)) << "rank " << rank << " lives and is left out";
    for (std::uint64_t k = 0; k < script_.count; ++k) {
      std::int32_t sum = 0;
      for (const net::Rank rank : contributors) sum += value(rank, operation, k);
      ASSERT_EQ(told.output[k], sum) << "element " << k;
    }
  }

  std::vector<std::unique_ptr<Survivors>> groups_;
  std::vector<std::weak_ptr<SumWork>> works_;
  std::vector<std::vector<Told>> told_;
  std::set<net::Rank> out_;
  int failed_ = 0, shrunk_ = 0;
  bool closing_ = false;
};

}  // namespace shoal::collective
