// Goal: centers are those of Lloyd's iteration in one loop, with the same bits on any number of members, interrupted or not; no cluster is left empty while a sample
// could be in it.
#include "shoal/learn/k_means.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "shoal/core/seed.h"
#include "tests/learn/members.h"

namespace shoal::learn {
namespace {

using Points = std::vector<std::vector<float>>;

// Points around four corners, a number in three of ten of them zero.
Points around_corners(std::uint32_t count) {
  Points points;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::vector<float> point(5);
    for (std::uint32_t c = 0; c < point.size(); ++c) {
      point[c] = static_cast<float>((c < 2 && (i >> c & 1) ? 10 : -10) + 4 * uniform(5, i, c, 0));
      if (uniform(5, i, c, 1) < 0.3 && c >= 2) point[c] = 0;
    }
    points.push_back(point);
  }
  return points;
}

LabelledRows rows_from(const Points& points, std::uint32_t member, std::uint32_t members) {
  LabelledRows rows;
  rows.member = member;
  rows.members = members;
  rows.columns = static_cast<std::uint32_t>(points.front().size());
  const data::Share share{member, members};
  for (const auto& point : points) {
    std::vector<std::uint32_t> columns;
    std::vector<float> values;
    for (std::uint32_t c = 0; c < point.size(); ++c) {
      rows.largest = std::max(rows.largest, std::abs(point[c]));
      if (point[c] == 0) continue;
      columns.push_back(c);
      values.push_back(point[c]);
    }
    if (share.holds(rows.count)) {
      rows.own.append(data::SparseRow{0, columns, values});
      rows.numbers.push_back(rows.count);
    }
    ++rows.count;
  }
  rows.own.width = rows.columns;
  return rows;
}

Begin k_means(const Points& points, std::uint32_t clusters, std::uint64_t seed = 1) {
  return [=](net::Transport& transport) {
    return std::make_unique<KMeans>(transport, rows_from(points, transport.rank(), transport.size()), KMeansOptions{clusters, seed});
  };
}

Points centers_of(const Tensors& model) {
  const Tensor& tensor = model.at("centers");
  Points centers;
  for (std::size_t j = 0; j < tensor.shape[0]; ++j) {
    const auto from = tensor.values.begin() + static_cast<std::ptrdiff_t>(j * tensor.shape[1]);
    centers.emplace_back(from, from + static_cast<std::ptrdiff_t>(tensor.shape[1]));
  }
  return centers;
}

double apart_squared(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += (double{a[c]} - b[c]) * (double{a[c]} - b[c]);
  return sum;
}

// One iteration of Lloyd's, one thread and a loop; and the mean squared distance before it.
std::pair<Points, double> lloyd(const Points& points, const Points& centers) {
  Points sums(centers.size(), std::vector<float>(points.front().size()));
  std::vector<std::vector<double>> exact(centers.size(), std::vector<double>(points.front().size()));
  std::vector<double> counts(centers.size());
  double distances = 0;
  for (const auto& point : points) {
    std::size_t nearest = 0;
    for (std::size_t j = 1; j < centers.size(); ++j) {
      if (apart_squared(point, centers[j]) < apart_squared(point, centers[nearest])) nearest = j;
    }
    distances += apart_squared(point, centers[nearest]);
    for (std::size_t c = 0; c < point.size(); ++c) exact[nearest][c] += point[c];
    ++counts[nearest];
  }
  for (std::size_t j = 0; j < centers.size(); ++j) {
    for (std::size_t c = 0; c < sums[j].size(); ++c) sums[j][c] = static_cast<float>(exact[j][c] / counts[j]);
  }
  return {sums, distances / static_cast<double>(points.size())};
}

TEST(KMeans, each_epoch_is_an_iteration_of_lloyds) {
  const Points points = around_corners(203);
  for (const net::Rank members : {1u, 3u}) {
    Points centers = centers_of(learnt_by(members, 1, k_means(points, 6)).model);
    for (unsigned epochs = 2; epochs < 6; ++epochs) {
      const auto [expected, distance] = lloyd(points, centers);
      const Learnt learnt = learnt_by(members, epochs, k_means(points, 6));
      EXPECT_NEAR(learnt.figure("mean squared distance"), distance, 1e-9 * distance);
      centers = centers_of(learnt.model);
      for (std::size_t j = 0; j < centers.size(); ++j) {
        for (std::size_t c = 0; c < centers[j].size(); ++c) EXPECT_FLOAT_EQ(centers[j][c], expected[j][c]);
      }
    }
  }
}

TEST(KMeans, any_number_of_members_has_the_same_bits_and_so_has_a_run_that_goes_on) {
  const Points points = around_corners(203);
  const Learnt alone = learnt_by(1, 5, k_means(points, 7));
  for (const net::Rank members : {2u, 5u}) {
    expect_same_bits(learnt_by(members, 5, k_means(points, 7)).model, alone.model);
    const Learnt half = learnt_by(members, 2, k_means(points, 7));
    expect_same_bits(learnt_by(members, 5, k_means(points, 7), 2, half.model).model, alone.model);
  }
}

TEST(KMeans, it_begins_with_given_centers) {
  const Points points = around_corners(203), first(points.begin() + 20, points.begin() + 26);
  Tensor centers{{first.size(), first.front().size()}, {}};
  for (const auto& center : first) centers.values.insert(centers.values.end(), center.begin(), center.end());
  const auto [expected, distance] = lloyd(points, first);
  for (const net::Rank members : {1u, 3u}) {
    const Learnt learnt = learnt_by(members, 1, k_means(points, 6), 0, {{"centers", centers}});
    EXPECT_NEAR(learnt.figure("mean squared distance"), distance, 1e-9 * distance);
    const Points found = centers_of(learnt.model);
    for (std::size_t j = 0; j < found.size(); ++j) {
      for (std::size_t c = 0; c < found[j].size(); ++c) EXPECT_FLOAT_EQ(found[j][c], expected[j][c]);
    }
  }
}

TEST(KMeans, it_comes_to_rest_at_the_corners) {
  const Learnt learnt = learnt_by(2, 20, k_means(around_corners(400), 4));
  EXPECT_TRUE(learnt.epochs.back().converged);
  EXPECT_FALSE(learnt.epochs.front().converged);
  EXPECT_EQ(learnt.figure("shift"), 0);
  std::set<std::pair<bool, bool>> corners;
  for (const auto& center : centers_of(learnt.model)) corners.emplace(center[0] > 0, center[1] > 0);
  EXPECT_EQ(corners.size(), 4u);
}

// First centers are different samples: of as many clusters as there are different ones each is its own.
TEST(KMeans, first_centers_are_different_samples) {
  Points points;
  for (int i = 0; i < 40; ++i) points.push_back({static_cast<float>(i % 8), 1});
  for (std::uint64_t seed = 1; seed < 10; ++seed) EXPECT_EQ(learnt_by(2, 1, k_means(points, 8, seed)).figure("mean squared distance"), 0);
}

// The second center is far from all: nobody is nearest to it, and it takes the sample that is farthest from its own.
TEST(KMeans, an_empty_cluster_takes_the_farthest_sample) {
  const Points points{{0, 1}, {1, 1}, {2, 1}, {9, 1}};
  for (const net::Rank members : {1u, 3u}) {
    const Learnt learnt = learnt_by(members, 2, k_means(points, 2), 1, {{"centers", Tensor{{2, 2}, {0, 1, 100, 1}}}});
    EXPECT_EQ(centers_of(learnt.model), (Points{{1, 1}, {9, 1}}));
  }
}

TEST(KMeans, what_cannot_be_is_refused_in_one_line) {
  const auto refusal = [](const Points& points, std::uint32_t clusters) -> std::string {
    auto jobs = net::join_all(1);
    try {
      k_means(points, clusters)(jobs[0]->transport())->learn([](double) {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal({{1, 2}, {3, 4}}, 3), "clusters: 3 are more than the 2 samples");
  EXPECT_EQ(refusal({{1, 2}, {3, 4}}, 0), "clusters: 0 is not between 1 and 1048576");
  EXPECT_EQ(refusal({{1, 2}, {1, 2}, {3, 4}}, 3), "clusters: there are only 2 different samples (ask for no more clusters)");
}

}  // namespace
}  // namespace shoal::learn
