// What the tests of data/ need: a folder of its own, texts in files, packed by each library's own packer, and the words of a refusal.
#pragma once

#include <bzlib.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/core/error.h"

namespace shoal::data::test {
namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  Files() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("shoal-data-" + std::to_string(::getpid()) + "-" + test->name());
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }

  fs::path file(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  std::string without_folder(std::string text) const {
    for (std::size_t at; (at = text.find(folder_.string() + "/")) != std::string::npos;) text.erase(at, folder_.string().size() + 1);
    return text;
  }
  std::string refusal(const std::function<void()>& act, Code code = Code::invalid_argument) const {
    try {
      act();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return without_folder(error.what());
    }
    return "accepted";
  }

  fs::path folder_;
};

inline std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(::deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<unsigned>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<unsigned>(packed.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

inline std::string bzip2(std::string_view text) {
  std::string packed(text.size() + text.size() / 100 + 700, '\0');
  unsigned size = static_cast<unsigned>(packed.size());
  EXPECT_EQ(::BZ2_bzBuffToBuffCompress(packed.data(), &size, const_cast<char*>(text.data()), static_cast<unsigned>(text.size()), 9, 0, 0), BZ_OK);
  packed.resize(size);
  return packed;
}

inline std::string xz(std::string_view text) {
  std::string packed(::lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  EXPECT_EQ(::lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                                      reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size()),
            LZMA_OK);
  packed.resize(size);
  return packed;
}

inline std::string zstd(std::string_view text) {
  std::string packed(::ZSTD_compressBound(text.size()), '\0');
  auto* context = ::ZSTD_createCCtx();
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  packed.resize(::ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size()));
  ::ZSTD_freeCCtx(context);
  return packed;
}

struct Packer {
  const char* name;
  std::string (*pack)(std::string_view);
};
inline const std::vector<Packer> kPackers = {{"gzip", gzip}, {"bzip2", bzip2}, {"xz", xz}, {"zstd", zstd}};

}  // namespace shoal::data::test
