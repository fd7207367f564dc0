// Rows that lie in a file: the same as those in memory; a disk that is full is an error.
#include "shoal/table/cold_file.h"

#include <sys/resource.h>

#include <csignal>
#include <random>

#include "shoal/core/error.h"
#include "shoal/table/image.h"
#include "tests/table/scratch.h"

namespace shoal::table {
namespace {

// Goal: whatever is done to them, rows in a file are those in memory. Oracle: the same calls in memory. 30 MB, in extents of several sizes.
TEST(ColdFile, rows_are_the_same_as_in_memory) {
  constexpr std::size_t kWidth = 500;
  const Scratch scratch;
  const Spec spec{.name = "rows", .width = kWidth, .initial = Initial::uniform(-1, 1, 5), .rule = Rule::sgd(0.5, 0.5)};
  OwnedRows<float> warm(spec, 1), cold(spec, 1, ColdFile::in(scratch / ""));
  std::mt19937_64 random(3);
  std::vector<float> values(kWidth);
  for (int change = 0; change < 20'000; ++change) {
    const Key key = random() % 8'000;
    for (std::size_t i = 0; i < kWidth; i += 50) values[i] = static_cast<float>(random() % 100) / 7;
    const auto what = random() % 4;
    for (OwnedRows<float>* const rows : {&warm, &cold}) {
      const auto number = rows->number_of(key);
      if (what == 0) rows->assign(number, values);
      if (what == 1) rows->add(number, 1, values, 0);
      if (what >= 2) rows->step(spec.rule, number, values, 2, {});
    }
  }
  EXPECT_EQ(files_in(scratch / ""), 0u) << "it has no name";
  RowsImage<float> one(warm), other(cold);
  std::size_t bytes = 0;
  for (Bytes expected = one.next(); !expected.empty(); expected = one.next()) {
    const Bytes found = other.next();
    ASSERT_TRUE(std::ranges::equal(expected, found));
    bytes += found.size();
  }
  EXPECT_TRUE(other.next().empty());
  EXPECT_GT(bytes, std::size_t{25} << 20);
}

TEST(ColdFile, a_disk_without_room_is_one_line) {
  const Scratch scratch;
  const auto said = [](const auto& call) -> std::string {
    try {
      call();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const std::string missing = (scratch / "missing").string();
  EXPECT_EQ(said([&] { ColdFile::in(missing); }), missing + ": no room for rows: No such file or directory (name another folder for cold rows)");
  const auto file = ColdFile::in(scratch / "");
  const Bytes before = file->take(1000);
  const auto on_the_signal = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{std::size_t{2} << 20, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string full = said([&] { file->take(std::size_t{3} << 20); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, on_the_signal);
  EXPECT_NE(full.find(": no room for rows: File too large"), std::string::npos) << full;
  before.data()[999] = std::byte{1};
  EXPECT_EQ(file->take(std::size_t{3} << 20).size(), std::size_t{3} << 20);
}

}  // namespace
}  // namespace shoal::table
