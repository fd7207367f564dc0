// Goal: rows in files are the rows that were given, leave nothing behind, and a folder that cannot be written to is one line.
#include "shoal/data/row_store.h"

#include <gmock/gmock.h>

#include "tests/data/files.h"

namespace shoal::data {
namespace {

using namespace test;
using Stores = Files;

TEST_F(Stores, rows_in_files_are_the_rows_that_were_given) {
  RowStore memory, disk = RowStore::in(folder_);
  EXPECT_TRUE(fs::is_empty(folder_)) << "the files have no name";
  for (std::uint32_t i = 0; i < 70'000; ++i) {  // more than is written at once
    const std::vector<std::uint32_t> columns(i % 8, i);
    const std::vector<float> values(i % 8, static_cast<float>(i));
    for (RowStore* store : {&memory, &disk}) store->append({static_cast<double>(i), columns, values});
  }
  memory.finish();
  disk.finish();
  const RowStore copy = disk;
  disk = RowStore();
  ASSERT_EQ(copy.size(), memory.size());
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const SparseRow one = memory[i], other = copy[i];
    ASSERT_EQ(one.label, other.label);
    ASSERT_TRUE(std::equal(one.columns.begin(), one.columns.end(), other.columns.begin(), other.columns.end())) << i;
    ASSERT_TRUE(std::equal(one.values.begin(), one.values.end(), other.values.begin(), other.values.end())) << i;
  }
}

TEST_F(Stores, none_and_empty_rows_are_rows_too) {
  RowStore disk = RowStore::in(folder_);
  disk.finish();
  EXPECT_EQ(disk.size(), 0u);
  RowStore empty = RowStore::in(folder_);
  empty.append({3, {}, {}});
  empty.finish();
  EXPECT_EQ(empty[0].columns.size(), 0u);
}

TEST_F(Stores, a_folder_that_is_not_there_is_one_line) {
  EXPECT_EQ(refusal([&] { RowStore::in(folder_ / "none"); }, Code::io), "none: no file can be made here: No such file or directory");
}

}  // namespace
}  // namespace shoal::data
