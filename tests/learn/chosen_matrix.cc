// A matrix that is shared otherwise while members go on with it.
#include "shoal/learn/chosen_matrix.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/net/members.h"

namespace shoal::learn {
namespace {

constexpr net::Rank kSharers = 3;
constexpr table::Key kMatrixRows = 40;
constexpr std::size_t kMatrixWidth = 5;
constexpr Nanoseconds kSharersPatience = std::chrono::seconds(60);
constexpr double kMultiplyRate = 1e12;  // so that bytes decide, however quick this machine's memory is
constexpr exchange::MatrixLoad kForFactors{.vectors = 1, .entries = 1e5, .touched = 1e5}, kForRows{.vectors = 1e6, .entries = 1e6, .touched = 1};

// Whole numbers, which sum up to the same in any order.
factor::Outer<float> outer_of(net::Rank rank, unsigned clock) {
  std::vector<table::Key> keys;
  for (table::Key key = (rank + clock) % 3; key < kMatrixRows; key += 3) keys.push_back(key);
  factor::Outer<float> outer(kMatrixWidth, keys);
  const auto vector = outer.new_vector();
  for (std::size_t j = 0; j < kMatrixWidth; ++j) vector[j] = static_cast<float>(1 + rank + j * clock % 7);
  for (std::size_t at = 0; at < keys.size(); ++at) outer.add(at, static_cast<float>(1 + keys[at]));
  outer.seal();
  return outer;
}

// What all members have added in clocks below `clocks`, one after the other.
std::vector<float> counted(unsigned clocks) {
  std::vector<float> rows(kMatrixRows * kMatrixWidth);
  for (unsigned clock = 0; clock < clocks; ++clock) {
    for (net::Rank rank = 0; rank < kSharers; ++rank) {
      const auto outer = outer_of(rank, clock);
      for (std::size_t at = 0; at < outer.rows().size(); ++at) outer.add_to(at, std::span(rows).subspan(outer.rows()[at] * kMatrixWidth, kMatrixWidth));
    }
  }
  return rows;
}

class Sharer {
 public:
  Sharer(net::Transport& transport, const char* consistency, bool factors)
      : transport_(transport), tables_(transport, {.patience = kSharersPatience}), worker_(tables_.worker()) {
    auto choice = std::make_unique<MatrixChoice>(
        transport, worker_, MatrixChoice::Of{.name = "choice", .rows = kMatrixRows, .width = kMatrixWidth, .multiply_rate = kMultiplyRate, .channel = 11, .patience = kSharersPatience});
    const auto make = [this, consistency](bool by_factors) {
      const MatrixForm form{"matrix", kMatrixRows, kMatrixWidth, table::consistency_from(consistency)};
      return share<float>(transport_, worker_, form, sharing_from(by_factors ? "factors" : "rows"), [] { return kForRows; }, kSharersPatience);
    };
    matrix_.emplace(transport, std::move(choice), MatrixChoice::Answer{factors, true, 1e-3, "so it begins"}, kMatrixRows, kMatrixWidth, make, [this] { return time_ += between_looks_; });
  }

  ChosenMatrix<float>& matrix() { return *matrix_; }
  // A clock waits as long as it takes from one look at the time to the next.
  void work(unsigned clocks, Nanoseconds waits = {}) {
    between_looks_ = waits;
    for (unsigned end = clock_ + clocks; clock_ < end; ++clock_) {
      matrix_->add(outer_of(transport_.rank(), clock_));
      matrix_->tick();
    }
    matrix_->barrier();
  }
  void expect_all() {
    std::vector<float> values(kMatrixRows * kMatrixWidth);
    matrix_->read(keys_in({0, kMatrixRows, 1}), values);
    EXPECT_EQ(values, counted(clock_));
    matrix_->barrier();  // nobody goes on before all have looked
  }
  void expect_shared_as(const std::string& way) { EXPECT_TRUE(matrix_->why().starts_with("weights are shared as " + way)) << matrix_->why(); }

 private:
  net::Transport& transport_;
  table::Tables tables_;
  table::Worker worker_;
  std::optional<ChosenMatrix<float>> matrix_;
  unsigned clock_ = 0;
  Instant time_{};
  Nanoseconds between_looks_{};
};

TEST(ChosenMatrix, has_all_that_was_added_whichever_way_it_was_shared_then) {
  for (const char* consistency : {"bsp", "essp:2"}) {
    SCOPED_TRACE(consistency);
    auto jobs = net::join_all(kSharers);
    net::each(kSharers, [&](net::Rank rank) {
      Sharer member(jobs[rank]->transport(), consistency, false);
      member.work(4);
      member.expect_all();
      for (const auto& [load, way] : {std::pair{kForFactors, "factors"}, {kForRows, "rows"}, {kForFactors, "factors"}}) {
        member.matrix().choose_anew(load);
        member.expect_shared_as(std::string(way) + ": predicted");
        member.expect_all();
        member.work(5);
        member.expect_all();
      }
    });
    net::leave_all(jobs);
  }
}

TEST(ChosenMatrix, is_chosen_anew_when_an_epoch_ends_whose_clocks_have_waited_longer_for_good) {
  constexpr unsigned window = exchange::Drift::kWindow;
  constexpr auto usual = std::chrono::milliseconds(1), longer = std::chrono::milliseconds(10);
  auto jobs = net::join_all(kSharers);
  net::each(kSharers, [&](net::Rank rank) {
    Sharer member(jobs[rank]->transport(), "bsp", false);
    const auto end_epoch = [&] { member.matrix().end_epoch([] { return kForFactors; }); };
    member.work(4 * window, usual);
    end_epoch();
    member.work(window, rank == 1 ? longer : usual);          // one window says nothing yet
    end_epoch();
    EXPECT_EQ(member.matrix().why(), "weights are shared as rows: so it begins");
    member.work(window, rank == 1 ? longer : usual);          // one member has seen it, and all look
    end_epoch();
    member.expect_shared_as("factors: predicted");
    member.expect_all();
    member.work(2, usual);
    member.expect_all();
  });
  net::leave_all(jobs);
}

}  // namespace
}  // namespace shoal::learn
