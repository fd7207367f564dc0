#include "shoal/observe/tensorboard_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>

#include "shoal/core/error.h"
#include "shoal/core/varint.h"
#include "shoal/observe/recorder.h"

namespace shoal::observe {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLongestRecord = 64 << 20;  // a reader believes no length beyond it

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
    table[i] = c;
  }
  return table;
}
constexpr auto kCrc = crc_table();

std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }

template <class Number>
void append(std::string& text, Number number) {
  static_assert(std::endian::native == std::endian::little);
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}
template <class Number>
Number number_at(std::string_view text) {
  Number number;
  std::memcpy(&number, text.data(), sizeof number);
  return number;
}

// --- protocol buffers: a field is its number and type, then a varint, 8 or 4 bytes, or a length and bytes

enum WireType { kVarint = 0, kEight = 1, kBytes = 2, kFour = 5 };

void varint(std::string& text, std::uint64_t value) {
  std::array<std::byte, kLongestVarint> bytes;
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(put_varint(bytes.data(), value) - bytes.data()));
}
void key(std::string& text, std::uint32_t field, WireType type) { varint(text, field << 3 | type); }
void bytes_field(std::string& text, std::uint32_t field, std::string_view bytes) {
  key(text, field, kBytes);
  varint(text, bytes.size());
  text += bytes;
}
std::string event(double unix_seconds) {
  std::string text;
  key(text, 1, kEight);
  append(text, unix_seconds);
  return text;
}
void step_field(std::string& text, std::int64_t step) {
  if (step == 0) return;  // its default
  key(text, 2, kVarint);
  varint(text, static_cast<std::uint64_t>(step));
}

std::optional<std::uint64_t> read_varint(std::string_view& text) {
  auto bytes = std::as_bytes(std::span(text));
  const auto value = take_varint(bytes);
  text.remove_prefix(text.size() - bytes.size());
  return value;
}

// The step of an Event; nothing where it is no such message.
std::optional<std::int64_t> step_of(std::string_view text) {
  std::int64_t step = 0;
  while (!text.empty()) {
    const auto field = read_varint(text);
    if (!field) return std::nullopt;
    std::uint64_t length = 0;
    switch (*field & 7) {
      case kVarint: {
        const auto value = read_varint(text);
        if (!value) return std::nullopt;
        if (*field >> 3 == 2) step = static_cast<std::int64_t>(*value);
        continue;
      }
      case kEight: length = 8; break;
      case kFour: length = 4; break;
      case kBytes: {
        const auto size = read_varint(text);
        if (!size) return std::nullopt;
        length = *size;
        break;
      }
      default: return std::nullopt;
    }
    if (length > text.size()) return std::nullopt;
    text.remove_prefix(length);
  }
  return step;
}

// The next record's payload; nothing at the end, or where the rest is cut off or damaged.
std::optional<std::string> next_record(std::istream& in) {
  std::array<char, 12> head;
  if (!in.read(head.data(), head.size())) return std::nullopt;
  const std::string_view length_bytes(head.data(), 8);
  const auto length = number_at<std::uint64_t>(length_bytes);
  if (number_at<std::uint32_t>({head.data() + 8, 4}) != masked(crc32c(length_bytes)) || length > kLongestRecord) return std::nullopt;
  std::string payload(length + 4, '\0');
  if (!in.read(payload.data(), static_cast<std::streamsize>(payload.size()))) return std::nullopt;
  const auto crc = number_at<std::uint32_t>(std::string_view(payload).substr(length));
  payload.resize(length);
  if (crc != masked(crc32c(payload))) return std::nullopt;
  return payload;
}

double unix_now() { return Seconds(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) crc = kCrc[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ crc >> 8;
  return ~crc;
}

std::string tensorboard_record(std::string_view payload) {
  std::string text;
  append(text, std::uint64_t{payload.size()});
  append(text, masked(crc32c(text)));
  text += payload;
  append(text, masked(crc32c(payload)));
  return text;
}

TensorBoardFile::TensorBoardFile(const fs::path& folder) {
  static std::atomic<int> files{0};
  std::error_code error;
  fs::create_directories(folder, error);
  const double now = unix_now();
  path_ = folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<std::int64_t>(now), this_author(0, 1).host, ::getpid(), files++);
  file_.open(path_, std::ios::binary | std::ios::trunc);
  if (!file_) {
    throw Error(Code::invalid_argument, std::string("cannot be written: ") + std::strerror(errno), folder.string(),
                "--tensorboard or SHOAL_TENSORBOARD names a folder that can");
  }
  std::string version = event(now);
  bytes_field(version, 3, "brain.Event:2");
  put(version);
}

void TensorBoardFile::begin_session(double unix_seconds, std::int64_t step) {
  std::string status;
  key(status, 1, kVarint);
  varint(status, 1);  // START
  std::string text = event(unix_seconds);
  step_field(text, step);
  bytes_field(text, 7, status);
  put(text);
}

void TensorBoardFile::scalar(double unix_seconds, std::int64_t step, std::string_view tag, double value) {
  std::string number, summary, text = event(unix_seconds);
  bytes_field(number, 1, tag);
  key(number, 2, kFour);
  append(number, static_cast<float>(value));
  bytes_field(summary, 1, number);
  step_field(text, step);
  bytes_field(text, 5, summary);
  put(text);
}

void TensorBoardFile::put(const std::string& event) { text_ += tensorboard_record(event); }

void TensorBoardFile::flush() {
  file_ << text_ << std::flush;
  text_.clear();
  if (!file_) throw Error(Code::io, std::string("cannot be written: ") + std::strerror(errno), path_.string());
}

std::optional<std::int64_t> last_step(const fs::path& folder) {
  std::optional<std::int64_t> last;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().filename().string().find("tfevents") == std::string::npos) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    while (const auto record = next_record(in)) {
      const auto step = step_of(*record);
      if (step && (!last || *step > *last)) last = step;
    }
  }
  return last;
}

}  // namespace shoal::observe
