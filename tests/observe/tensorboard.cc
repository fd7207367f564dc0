// TensorBoard's files byte by byte, and which scalars a run's events become at which step.
#include "shoal/observe/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "shoal/core/error.h"
#include "tests/observe/a_run.h"

namespace shoal::observe {
namespace {

namespace fs = std::filesystem;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// RFC 3720, B.4, and the first record of every file that TensorFlow writes, with wall_time 0.
TEST(TensorBoardFile, has_the_published_bytes) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  std::string payload;
  payload.push_back('\x09');
  payload.append(8, '\0');
  payload += "\x1a\x0d" "brain.Event:2";
  EXPECT_EQ(hex(tensorboard_record(payload)),
            "1800000000000000a37f4b22" "0900000000000000001a0d627261696e2e4576656e743a32" "eedf28a3");
}

// Event{1: 0.5, 2: 300, 5: Summary{1: Value{1: "loss", 2: 1.5}}}
TEST(TensorBoardFile, writes_a_scalar_as_an_event) {
  const OwnFolder own("tensorboard");
  TensorBoardFile file(own.path());
  file.flush();
  const std::size_t before = content(file.path()).size();
  file.scalar(0.5, 300, "loss", 1.5);
  file.flush();
  EXPECT_EQ(hex(content(file.path()).substr(before + 12)).substr(0, 2 * 27),
            "09000000000000e03f" "10ac02" "2a0d" "0a0b" "0a046c6f7373" "150000c03f");
}

TEST(TensorBoardFile, each_has_a_name_of_its_own_that_sorts_by_time) {
  const OwnFolder own("names");
  const TensorBoardFile one(own.path() / "a/b"), two(own.path() / "a/b");
  EXPECT_NE(one.path(), two.path());
  EXPECT_THAT(one.path().filename().string(), testing::MatchesRegex("events\\.out\\.tfevents\\.[0-9]{10}\\..+\\.[0-9]+\\.[0-9]+"));
}

TEST(TensorBoardFile, the_last_step_is_found_up_to_where_a_file_is_cut_off_or_damaged) {
  const OwnFolder own("last");
  EXPECT_EQ(last_step(own.path() / "none"), std::nullopt);
  TensorBoardFile file(own.path());
  for (const std::int64_t step : {7, 1'000'000, 9'000'000}) file.scalar(0, step, "loss", 0);
  file.flush();
  EXPECT_EQ(last_step(own.path()), 9'000'000);
  const auto size = fs::file_size(file.path());
  fs::resize_file(file.path(), size - 1);
  EXPECT_EQ(last_step(own.path()), 1'000'000);
  fs::resize_file(file.path(), 5);
  EXPECT_EQ(last_step(own.path()), std::nullopt);
  std::string damaged = content(TensorBoardFile(own.path()).path());
  std::ofstream(own.path() / "events.out.tfevents.2", std::ios::binary) << std::string(12, '\xff') + damaged;
  EXPECT_EQ(last_step(own.path()), std::nullopt);
}

TEST(TensorBoardFile, a_folder_that_cannot_be_written_is_one_line) {
  const OwnFolder own("refused");
  std::ofstream(own.path() / "file") << "x";
  try {
    TensorBoardFile file(own.path() / "file");
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.what(), testing::HasSubstr((own.path() / "file").string() + ": cannot be written: Not a directory"));
  }
}

// --- events

struct Point {
  std::int64_t step;
  std::string tag;
  float value;
  bool operator==(const Point&) const = default;
};
void PrintTo(const Point& point, std::ostream* out) { *out << point.step << " " << point.tag << " " << point.value; }

std::uint64_t varint(std::string_view bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.at(at++));
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

// What our writer writes, read again: fields in the order in which it writes them. A session's start has the tag "begin".
std::vector<Point> points_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Point> points;
  for (const fs::path& file : files) {
    const std::string text = content(file);
    for (std::size_t record = 0; record < text.size();) {
      std::uint64_t length = 0;
      std::memcpy(&length, text.data() + record, 8);
      const std::string_view event = std::string_view(text).substr(record + 12, length);
      record += length + 16;
      std::size_t at = 9;
      Point point{};
      if (event.at(at) == 2 << 3) point.step = static_cast<std::int64_t>(varint(event, ++at));
      if (event.at(at) == (7 << 3 | 2)) points.push_back({point.step, "begin", 0});
      if (event.at(at) != (5 << 3 | 2)) continue;
      at += 5;  // summary, value, tag: each with a length of one byte
      const auto size = static_cast<std::size_t>(event.at(at++));
      point.tag = event.substr(at, size);
      std::memcpy(&point.value, event.data() + at + size + 1, 4);
      points.push_back(point);
    }
  }
  return points;
}

// Two steps of 100 ms from iteration `first` on; a metric without a step inside the second, one with a step behind it.
std::vector<Event> two_steps(std::int64_t first, std::int64_t told_step, double begin = 0) {
  const auto loss = Events::local().intern("loss"), norm = Events::local().intern("norm");
  std::vector<Event> events;
  for (int i = 0; i < 2; ++i) {
    const double t = begin + 100.0 * i;
    events.push_back({EventKind::forward, ms(t), ms(t + 20), first + i, -1, 8});
    events.push_back({EventKind::backward, ms(t + 20), ms(t + 60), first + i, -1, 8});
    if (i == 1) events.push_back({EventKind::metric, ms(t + 60), ms(t + 60), -1, -1, 4, norm});
    events.push_back({EventKind::received, ms(t + 30), ms(t + 60), -1, 2, 1e6});
    events.push_back({EventKind::exposed, ms(t + 60), ms(t + 90), first + i});
    events.push_back({EventKind::optimizer, ms(t + 90), ms(t + 100), first + i});
  }
  events.push_back({EventKind::metric, ms(begin + 200), ms(begin + 200), told_step, -1, 0.5, loss});
  return events;
}

const Author kFourMembers{0, 4, "fox", "boot", 1, 0};

// A whole training in one flush.
void train(const fs::path& folder, const std::vector<Event>& events) {
  TensorBoard board(folder, kFourMembers);
  board.take(events);
  board.close();
}

TEST(TensorBoard, derives_rates_and_shares_of_what_came_since_the_last_time) {
  const OwnFolder own("derives");
  train(own.path(), two_steps(0, -1));
  EXPECT_EQ(points_of(own.path()),
            (std::vector<Point>{{2, "norm", 4}, {2, "loss", 0.5}, {2, "samples_per_second", 16 * 4 / 0.2f},
                                {2, "exposed_share", 0.3f}, {2, "received_MB_per_second/from_rank_2", 10}}));
}

TEST(TensorBoard, puts_everything_on_the_axis_of_the_steps_it_is_told) {
  const OwnFolder own("told");
  {
    TensorBoard board(own.path(), kFourMembers);
    board.take(two_steps(0, 1002));  // iteration 1 is step 1002
    board.take(two_steps(2, 1004, 200));
  }
  const auto points = points_of(own.path());
  ASSERT_EQ(points.size(), 10u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(points[i].step, 1002) << i;
  for (std::size_t i = 5; i < 10; ++i) EXPECT_EQ(points[i].step, 1004) << i;
}

TEST(TensorBoard, a_second_training_draws_on_behind_the_first) {
  const OwnFolder own("again");
  train(own.path(), two_steps(0, -1));
  train(own.path(), two_steps(0, -1));
  const auto points = points_of(own.path());
  ASSERT_EQ(points.size(), 11u);
  EXPECT_EQ(points[5], (Point{4, "begin", 0}));
  EXPECT_EQ(points[6], (Point{4, "norm", 4}));
  EXPECT_EQ(points[8].step, 4);
}

// The first reached step 9; its checkpoint was of step 4. The first flush knows of no step yet: it waits for the second, since
// TensorBoard drops what is behind a session's begin, and only that.
TEST(TensorBoard, a_training_that_goes_on_from_a_checkpoint_replaces_what_it_does_again) {
  const OwnFolder own("resumed");
  train(own.path(), two_steps(7, 9));
  {
    TensorBoard board(own.path(), kFourMembers);
    board.take(two_steps(0, -1));
    EXPECT_EQ(points_of(own.path()).size(), 5u);
    board.take(two_steps(2, 8, 200));
  }
  const auto points = points_of(own.path());
  EXPECT_EQ(points[5].tag, "begin");
  EXPECT_EQ(points[5].step, 6);
  EXPECT_EQ(points.back().step, 8);
}

TEST(TensorBoard, without_any_told_step_the_second_flush_is_shown) {
  const OwnFolder own("untold");
  TensorBoard board(own.path(), kFourMembers);
  board.take(two_steps(0, -1));
  EXPECT_TRUE(points_of(own.path()).empty());
  board.take(two_steps(2, -1, 200));
  EXPECT_EQ(points_of(own.path()).back().step, 4);
}

}  // namespace
}  // namespace shoal::observe
