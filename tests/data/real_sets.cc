// Goal: real files are read as those who described them count them. Oracle: the figures of their descriptions. SHOAL_DATA names the folder of the
// sets, where this machine has them; CMake says it where they lie beside the project.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "shoal/data/libsvm.h"
#include "shoal/data/triples.h"
#include "tests/data/real_sets.h"

namespace shoal::data {
namespace {

TEST_F(RealSets, libsvm) {
  struct Set {
    const char* file;
    std::uint64_t samples, columns, labels;
    std::int64_t positive;  // with label 1; -1: not told
  };
  for (const Set& set : {Set{"a9a.bz2", 32561, 123, 2, 7841}, Set{"a9a.t.bz2", 16281, 123, 2, -1}, Set{"w8a.bz2", 49749, 300, 2, 1479},
                         Set{"reuters.trn.bz2", 7770, 8315, 2, 538}, Set{"reuters.tst.bz2", 3299, 8315, 2, 179},
                         Set{"sector.scale.bz2", 6412, 55197, 105, -1}, Set{"pendigits.bz2", 7494, 16, 10, -1}, Set{"sonar.bz2", 208, 60, 2, -1},
                         Set{"spam.bz2", 4601, 57, 2, -1}, Set{"heart_scale", 270, 13, 2, -1}, Set{"abalone.trn.bz2", 4177, 8, 28, -1}}) {
    const auto [rows, read] = read_libsvm({folder_ / "classic" / set.file});
    EXPECT_EQ(read.samples, set.samples) << set.file;
    EXPECT_LE(read.columns, set.columns) << set.file;  // the last column may be in no row
    EXPECT_GE(read.columns + set.columns / 100, set.columns) << set.file;
    EXPECT_EQ(std::set<double>(rows.labels.begin(), rows.labels.end()).size(), set.labels) << set.file;
    if (set.positive < 0) continue;
    EXPECT_EQ(std::count(rows.labels.begin(), rows.labels.end(), 1), set.positive) << set.file;
  }
}

TEST_F(RealSets, ratings) {
  const auto [ratings, read] = read_triples({folder_ / "ps/movielens/ml-1m.csv.gz"});
  EXPECT_EQ(sentence(read, {"ratings", "users", "items"}),
            "read 1,000,209 ratings of 6,040 users and 3,706 items from ml-1m.csv.gz, fields between ',' after the header 'user,item,rating'; 0 "
            "lines skipped");
  EXPECT_NEAR(std::accumulate(ratings.values.begin(), ratings.values.end(), 0.0) / 1'000'209, 3.5816, 5e-5);
  const auto small = read_triples({folder_ / "ps/movielens/ml-latest-small-2016.csv.gz"}).second;
  EXPECT_EQ(sentence(small, {"ratings", "users", "items"}),
            "read 100,004 ratings of 671 users and 9,066 items from ml-latest-small-2016.csv.gz, fields between ',' after the header "
            "'user,item,rating,timestamp'; 0 lines skipped");
}

TEST_F(RealSets, edges) {
  const auto [edges, read] = read_triples({folder_ / "graph/docweb/edges.tsv.gz"});
  EXPECT_EQ(read.samples, 2'413'009u);
  EXPECT_EQ(read.form, "fields between tabs");
  EXPECT_EQ(std::accumulate(edges.values.begin(), edges.values.end(), 0.0), 4'429'717);
  std::uint64_t loops = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) loops += edges.row_names[edges.rows[i]] == edges.column_names[edges.columns[i]] ? 1 : 0;
  EXPECT_EQ(loops, 9294u);
}

}  // namespace
}  // namespace shoal::data
