#include "shoal/data/unpackers.h"

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace shoal::data {
namespace {

constexpr std::uint64_t kMostMemory = 512u << 20;
constexpr int kMostWindowLog = 29;  // the same for zstd: 2^29 bytes

template <class T>
unsigned at_most(std::span<T> bytes) {  // the libraries count in 32 bits
  return static_cast<unsigned>(std::min<std::size_t>(bytes.size(), std::numeric_limits<unsigned>::max()));
}

[[noreturn]] void damaged(const char* why) { throw std::runtime_error(why == nullptr ? "bytes that mean nothing" : why); }

class Gzip : public Unpacker {
 public:
  Gzip() {
    if (::inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();  // 16: with gzip's header and check sum
  }
  ~Gzip() override { ::inflateEnd(&stream_); }
  const char* format() const override { return "gzip"; }

  bool step(std::span<const char>& packed, std::span<char>& plain) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = at_most(packed);
    stream_.next_out = reinterpret_cast<Bytef*>(plain.data());
    stream_.avail_out = at_most(plain);
    const unsigned in = stream_.avail_in, out = stream_.avail_out;
    const int state = ::inflate(&stream_, Z_NO_FLUSH);
    packed = packed.subspan(in - stream_.avail_in);
    plain = plain.subspan(out - stream_.avail_out);
    if (state == Z_STREAM_END) {
      ::inflateReset(&stream_);
      return true;
    }
    if (state == Z_MEM_ERROR) throw std::bad_alloc();
    if (state != Z_OK && state != Z_BUF_ERROR) damaged(stream_.msg);
    return false;
  }

 private:
  z_stream stream_{};
};

class Bzip2 : public Unpacker {
 public:
  Bzip2() { begin(); }
  ~Bzip2() override { ::BZ2_bzDecompressEnd(&stream_); }
  const char* format() const override { return "bzip2"; }

  bool step(std::span<const char>& packed, std::span<char>& plain) override {
    stream_.next_in = const_cast<char*>(packed.data());
    stream_.avail_in = at_most(packed);
    stream_.next_out = plain.data();
    stream_.avail_out = at_most(plain);
    const unsigned in = stream_.avail_in, out = stream_.avail_out;
    const int state = ::BZ2_bzDecompress(&stream_);
    packed = packed.subspan(in - stream_.avail_in);
    plain = plain.subspan(out - stream_.avail_out);
    if (state == BZ_STREAM_END) {
      ::BZ2_bzDecompressEnd(&stream_);
      begin();
      return true;
    }
    if (state == BZ_MEM_ERROR) throw std::bad_alloc();
    if (state != BZ_OK) damaged(state == BZ_DATA_ERROR_MAGIC ? "no header where a part should begin" : "a check sum differs");
    return false;
  }

 private:
  void begin() {
    stream_ = {};
    if (::BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) throw std::bad_alloc();
  }
  bz_stream stream_{};
};

class Xz : public Unpacker {
 public:
  Xz() { begin(); }
  ~Xz() override { ::lzma_end(&stream_); }
  const char* format() const override { return "xz"; }

  bool step(std::span<const char>& packed, std::span<char>& plain) override {
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
    stream_.avail_in = packed.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(plain.data());
    stream_.avail_out = plain.size();
    const lzma_ret state = ::lzma_code(&stream_, LZMA_RUN);
    packed = packed.last(stream_.avail_in);
    plain = plain.last(stream_.avail_out);
    if (state == LZMA_STREAM_END) {
      begin();
      return true;
    }
    if (state == LZMA_MEM_ERROR) throw std::bad_alloc();
    if (state != LZMA_OK && state != LZMA_BUF_ERROR && state != LZMA_NO_CHECK && state != LZMA_UNSUPPORTED_CHECK) damaged(words(state));
    return false;
  }

 private:
  static const char* words(lzma_ret state) {
    switch (state) {
      case LZMA_FORMAT_ERROR: return "no header where a part should begin";
      case LZMA_MEMLIMIT_ERROR: return "it needs more than 512 MiB of memory to unpack";
      case LZMA_OPTIONS_ERROR: return "it uses options of a newer xz";
      default: return "a check sum differs";
    }
  }
  void begin() {
    if (::lzma_stream_decoder(&stream_, kMostMemory, 0) != LZMA_OK) throw std::bad_alloc();
  }
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

class Zstd : public Unpacker {
 public:
  Zstd() {
    if (stream_ == nullptr) throw std::bad_alloc();
    ::ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kMostWindowLog);
  }
  const char* format() const override { return "zstd"; }

  bool step(std::span<const char>& packed, std::span<char>& plain) override {
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    ZSTD_outBuffer out{plain.data(), plain.size(), 0};
    const std::size_t state = ::ZSTD_decompressStream(stream_.get(), &out, &in);
    if (::ZSTD_isError(state) != 0) damaged(::ZSTD_getErrorName(state));
    packed = packed.subspan(in.pos);
    plain = plain.subspan(out.pos);
    return state == 0;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ::ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_{::ZSTD_createDStream()};
};

// zstd's parts may begin with one that holds no data: 0x184D2A50 to 0x184D2A5F, little endian (RFC 8878, 3.1.2).
bool is_zstd(std::string_view bytes) {
  return bytes.starts_with("\x28\xB5\x2F\xFD") || (bytes.size() >= 4 && (bytes[0] & 0xF0) == 0x50 && bytes.substr(1, 3) == "\x2A\x4D\x18");
}

}  // namespace

std::unique_ptr<Unpacker> unpacker_for(std::string_view first_bytes) {
  if (first_bytes.starts_with("\x1F\x8B")) return std::make_unique<Gzip>();
  if (first_bytes.starts_with("BZh") && first_bytes.size() > 9 &&
      (first_bytes.substr(4, 6) == "1AY&SY" || first_bytes.substr(4, 4) == "\x17\x72\x45\x38"))
    return std::make_unique<Bzip2>();
  if (first_bytes.starts_with("\xFD"
                              "7zXZ"))
    return std::make_unique<Xz>();
  if (is_zstd(first_bytes)) return std::make_unique<Zstd>();
  return nullptr;
}

}  // namespace shoal::data
