#include "shoal/data/idx.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <system_error>

#include "shoal/core/error.h"

namespace shoal::data {
namespace {

constexpr std::uint64_t kMostNumbers = 1 << 26;  // of a sample

std::size_t bytes_of(std::uint8_t type) {
  switch (type) {
    case 0x08:
    case 0x09: return 1;
    case 0x0B: return 2;
    case 0x0C:
    case 0x0D: return 4;
    case 0x0E: return 8;
    default: return 0;
  }
}

// Numbers lie with their largest byte first.
template <class Bits>
Bits bits_at(const char* at) {
  Bits bits = 0;
  for (std::size_t i = 0; i < sizeof(Bits); ++i) bits = static_cast<Bits>(bits << 8 | static_cast<unsigned char>(at[i]));
  return bits;
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what, const std::string& hint = {}) {
  throw Error(Code::invalid_argument, what, file.string(), hint);
}

// "train-labels-idx1-ubyte.gz" for "train-images-idx3-ubyte.gz"; none where there is no such file.
std::filesystem::path labels_for(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  const auto at = name.find("images-idx3");
  if (at == std::string::npos) return {};
  const auto labels = std::filesystem::path(file).replace_filename(name.replace(at, std::strlen("images-idx3"), "labels-idx1"));
  std::error_code none;
  return std::filesystem::exists(labels, none) ? labels : std::filesystem::path();
}

}  // namespace

bool is_idx(std::string_view begin) {
  return begin.size() >= 4 && begin[0] == 0 && begin[1] == 0 && bytes_of(static_cast<std::uint8_t>(begin[2])) > 0 && begin[3] > 0 && begin[3] <= 8;
}

IdxReader::Array::Array(const std::filesystem::path& from) : path(from), file(from) {
  char head[4];
  if (file.read(head) != sizeof head || !is_idx({head, sizeof head})) refuse(path, "is no IDX file", "its first bytes are 0, 0, a type and how many dimensions it has");
  type = static_cast<std::uint8_t>(head[2]);
  bytes = bytes_of(type);
  for (int i = 0; i < head[3]; ++i) {
    char size[4];
    if (file.read(size) != sizeof size) refuse(path, "ends inside its sizes, so it was cut short");
    dimensions.push_back(bits_at<std::uint32_t>(size));
    if (i > 0) numbers *= dimensions.back();
    if (numbers == 0 || numbers > kMostNumbers) refuse(path, "a sample has " + std::to_string(numbers) + " numbers", "1 to 67108864 can be read");
  }
}

double IdxReader::Array::number(const char* at) const {
  switch (type) {
    case 0x08: return static_cast<unsigned char>(*at);
    case 0x09: return static_cast<signed char>(*at);
    case 0x0B: return static_cast<std::int16_t>(bits_at<std::uint16_t>(at));
    case 0x0C: return static_cast<std::int32_t>(bits_at<std::uint32_t>(at));
    case 0x0D: return std::bit_cast<float>(bits_at<std::uint32_t>(at));
    default: return std::bit_cast<double>(bits_at<std::uint64_t>(at));
  }
}

IdxReader::IdxReader(std::vector<std::filesystem::path> files) {
  if (files.empty()) throw Error(Code::invalid_argument, "no file to read");
  read_.files = std::move(files);
  open_next();
}

bool IdxReader::open_next() {
  if (opened_ == read_.files.size()) return false;
  const auto& path = read_.files[opened_++];
  samples_ = std::make_unique<Array>(path);
  left_ = samples_->dimensions.front();
  if (opened_ == 1) {
    read_.columns = samples_->numbers;
  } else if (read_.columns != samples_->numbers) {
    refuse(path, "has " + std::to_string(samples_->numbers) + " numbers a sample", "the first file has " + std::to_string(read_.columns));
  }
  const auto labels = labels_for(path);
  labels_ = labels.empty() ? nullptr : std::make_unique<Array>(labels);
  if (opened_ == 1) read_.form = labels_ ? "labels from " + labels.filename().string() : "without labels";
  if (labels_ && (labels_->numbers != 1 || labels_->dimensions.front() != left_)) {
    refuse(labels, "has no label for each of the " + std::to_string(left_) + " samples of " + path.filename().string());
  }
  return true;
}

std::string_view IdxReader::take(Array& array) {
  const std::size_t size = array.numbers * array.bytes;
  buffer_.resize(std::max(buffer_.size(), size));
  if (array.file.read(std::span(buffer_).first(size)) != size) refuse(array.path, "ends before its last sample, so it was cut short", "copy or pack it again");
  return {buffer_.data(), size};
}

bool IdxReader::next(SparseRows& batch, std::size_t most) {
  batch.clear();
  batch.width = static_cast<std::uint32_t>(read_.columns);
  while (batch.size() < most) {
    if (left_ == 0) {
      if (open_next()) continue;
      break;
    }
    --left_;
    const std::string_view sample = take(*samples_);
    for (std::uint32_t column = 0; column < batch.width; ++column) {
      const auto value = static_cast<float>(samples_->number(sample.data() + column * samples_->bytes));
      if (!std::isfinite(value)) refuse(samples_->path, "sample " + std::to_string(read_.samples + 1) + " has a number that is not finite");
      if (value == 0) continue;
      batch.columns.push_back(column);
      batch.values.push_back(value);
    }
    batch.offsets.push_back(batch.columns.size());
    batch.labels.push_back(labels_ ? labels_->number(take(*labels_).data()) : 0);
    if (!std::isfinite(batch.labels.back())) refuse(labels_->path, "label " + std::to_string(read_.samples + 1) + " is not finite");
    ++read_.samples;
    ++read_.kept;
  }
  read_.values += batch.values.size();
  if (read_.samples == 0) refuse(read_.files.front(), "has no sample", "is it the right file?");
  return batch.size() > 0;
}

}  // namespace shoal::data
