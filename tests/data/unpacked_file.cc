// Goal: what comes out of a packed file is what went in, by whatever it was packed and in however many parts; what is damaged or cut short never
// passes for whole. Oracle: the text itself.
#include "shoal/data/unpacked_file.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/data/files.h"

namespace shoal::data {
namespace {

using namespace test;

class Unpacked : public Files {
 protected:
  // By reads of `step` bytes.
  static std::string read(const fs::path& file, std::size_t step = 100'000) {
    UnpackedFile in(file);
    std::string text;
    for (std::string room(step, '\0');;) {
      const std::size_t got = in.read(room);
      text.append(room, 0, got);
      if (got < step) return text;
    }
  }
};

// Some packs well, some does not.
std::string some_text(std::size_t size) {
  std::mt19937_64 random(7);
  std::string text;
  while (text.size() < size) text += "word" + std::to_string(random() % 1000) + (random() % 9 == 0 ? "\n" : " ");
  text.resize(size);
  return text;
}

TEST_F(Unpacked, gives_what_was_packed) {
  for (const std::size_t size : {0u, 1u, 65'536u, 1'000'003u}) {
    const std::string text = some_text(size);
    for (const std::size_t step : {1000u, 65'536u, 2'000'000u}) {
      EXPECT_EQ(read(file("plain", text), step), text);
      for (const auto& [name, pack] : kPackers) EXPECT_TRUE(read(file(name, pack(text)), step) == text) << name << " " << size;
    }
  }
}

TEST_F(Unpacked, reads_all_parts_of_a_file) {
  const std::string text = some_text(200'000);
  for (const auto& [name, pack] : kPackers) EXPECT_TRUE(read(file(name, pack(text) + pack("") + pack("end"))) == text + "end") << name;
  const std::string nothing("\x50\x2A\x4D\x18\x03\x00\x00\x00xyz", 11);  // a part of zstd's that holds no data (RFC 8878, 3.1.2)
  EXPECT_TRUE(read(file("skipped", nothing + zstd(text) + nothing)) == text);
}

// Whatever the length at which it is cut, but for nothing at all (an empty file) and what is too little to be seen as packed.
TEST_F(Unpacked, a_file_that_was_cut_short_never_passes_for_whole) {
  const std::string text = some_text(5000);
  for (const auto& [name, pack] : kPackers) {
    const std::string packed = pack(text);
    for (std::size_t length = 12; length < packed.size(); length += 1 + length / 7) {
      EXPECT_EQ(refusal([&] { read(file("cut", packed.substr(0, length))); }),
                "cut: ends inside its " + std::string(name) + " data, so it was cut short (copy or pack it again)")
          << length;
    }
  }
}

TEST_F(Unpacked, damage_is_seen) {
  std::mt19937_64 random(3);
  const std::string text = some_text(20'000);
  for (const auto& [name, pack] : kPackers) {
    const std::string packed = pack(text);
    for (int round = 0; round < 50; ++round) {
      std::string broken = packed;
      // Behind the headers, in which gzip has bytes that mean nothing (a date), before the last bytes.
      broken[20 + random() % (packed.size() - 40)] ^= static_cast<char>(1 + random() % 255);
      const std::string said = refusal([&] { read(file("broken", broken)); });
      EXPECT_THAT(said, testing::StartsWith("broken: ")) << name;
      EXPECT_THAT(said, testing::HasSubstr(name));
    }
    EXPECT_THAT(refusal([&] { read(file("behind", packed + "and more")); }), testing::StartsWith("behind: "));
  }
}

TEST_F(Unpacked, says_what_it_cannot_open) {
  EXPECT_EQ(refusal([&] { read(folder_ / "none"); }), "none: cannot be opened: No such file or directory");
  fs::create_directories(folder_ / "folder");
  EXPECT_EQ(refusal([&] { read(folder_ / "folder"); }), "folder: is a folder (name the files in it)");
  EXPECT_EQ(refusal([&] { read(file("a", "PK\x03\x04 and so on")); }), "a: is a zip archive (unpack it first)");
}

}  // namespace
}  // namespace shoal::data
