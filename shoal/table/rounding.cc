#include "shoal/table/rounding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

namespace shoal::table {
namespace {

// Of a message of rows: the same keys, each row as `put` makes it.
template <class Put>
Message with_rows(Message message, std::size_t bytes_a_row, const BytesPool& bodies, const Put& put) {
  const std::size_t rows = message.header.count;
  if (rows == 0) return message;
  Message other;
  other.header = message.header;
  other.body = bodies.take(rows * (sizeof(Key) + bytes_a_row));
  other.header.length = static_cast<std::uint32_t>(other.body.size());
  std::memcpy(other.body.data(), message.body.data(), rows * sizeof(Key));
  std::byte* into = other.body.data() + rows * sizeof(Key);
  for (std::size_t row = 0; row < rows; ++row, into += bytes_a_row) put(row, into);
  return other;
}

}  // namespace

template <class T>
Message encoded(Encoding encoding, Message message, std::size_t width, const BytesPool& bodies) {
  if constexpr (std::is_floating_point_v<T>) {
    if (encoding == Encoding::none) return message;
    const auto values = message.values<T>();
    return with_rows(message, encoded_bytes(encoding, width, sizeof(T)), bodies, [&](std::size_t row, std::byte* into) {
      encode<T>(encoding, values.subspan(row * width, width), into);
    });
  }
  return message;
}

template <class T>
Message decoded(Encoding encoding, Message message, std::size_t width) {
  if constexpr (std::is_floating_point_v<T>) {
    if (encoding == Encoding::none) return message;
    const std::size_t bytes = encoded_bytes(encoding, width, sizeof(T));
    const std::byte* const from = message.body.data() + message.header.count * sizeof(Key);
    return with_rows(message, width * sizeof(T), *BytesPool::of_process(), [&](std::size_t row, std::byte* into) {
      decode<T>(encoding, from + row * bytes, {reinterpret_cast<T*>(into), width});
    });
  }
  return message;
}

template <class T>
void LeftOut<T>::round(Key key, std::span<T> row) {
  if constexpr (std::is_floating_point_v<T>) {
    const std::span<T> left = rows_.row(rows_.insert(key));
    add<T>(row, left);
    std::ranges::copy(row, left.begin());
    table::round<T>(encoding_, row);
    for (std::size_t i = 0; i < row.size(); ++i) left[i] = std::isfinite(left[i]) ? left[i] - row[i] : 0;
  }
}

template <class T>
void Rounded<T>::forget(std::uint32_t number) {
  changes(number);
  if (const auto left = left_out_.find(number); left != RowMap<T>::kNone) std::ranges::fill(left_out_.row(left), T{});
}

template <class T>
std::span<const T> Rounded<T>::show(std::uint32_t number, std::span<const T> row) {
  if constexpr (std::is_floating_point_v<T>) {
    if (number >= stale_.size()) stale_.resize(number + 1, true);
    const std::span<T> shown = shown_.row(shown_.insert(number)), left = left_out_.row(left_out_.insert(number));
    if (!stale_[number]) return shown;
    stale_[number] = false;
    const double step_of_row = encoding_ == Encoding::int8 ? step_at(encoding_, row, 0) : 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto half = static_cast<T>((encoding_ == Encoding::int8 ? step_of_row : step_at(encoding_, row, i)) / 2);
      shown[i] = row[i] + std::clamp(left[i], -half, half);
      left[i] = shown[i];
    }
    table::round<T>(encoding_, shown);
    for (std::size_t i = 0; i < row.size(); ++i) left[i] = std::isfinite(left[i]) ? left[i] - shown[i] : 0;
    return shown;
  }
  return row;
}

template class LeftOut<float>;
template class LeftOut<double>;
template class LeftOut<std::int32_t>;
template class LeftOut<std::int64_t>;
template class Rounded<float>;
template class Rounded<double>;
template class Rounded<std::int32_t>;
template class Rounded<std::int64_t>;
template Message encoded<float>(Encoding, Message, std::size_t, const BytesPool&);
template Message encoded<double>(Encoding, Message, std::size_t, const BytesPool&);
template Message encoded<std::int32_t>(Encoding, Message, std::size_t, const BytesPool&);
template Message encoded<std::int64_t>(Encoding, Message, std::size_t, const BytesPool&);
template Message decoded<float>(Encoding, Message, std::size_t);
template Message decoded<double>(Encoding, Message, std::size_t);
template Message decoded<std::int32_t>(Encoding, Message, std::size_t);
template Message decoded<std::int64_t>(Encoding, Message, std::size_t);

}  // namespace shoal::table
