#include "shoal/table/functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "shoal/core/error.h"

namespace shoal::table {
namespace {

thread_local bool inside = false;

template <class T>
std::vector<Wide<T>> sum_of_squares(const Block<T>& block) {
  std::vector<Wide<T>> sums;
  for (std::size_t row = 0; row < block.keys.size(); ++row) {
    Wide<T> sum = 0;
    for (const T value : block.rows.subspan(row * block.width(), block.width())) {
      const auto wide = static_cast<Wide<T>>(value);
      if constexpr (std::is_integral_v<T>) {
        Wide<T> square = 0;
        if (!__builtin_mul_overflow(wide, wide, &square) && !__builtin_add_overflow(sum, square, &sum)) continue;
        throw Error(Code::invalid_argument, "the sum of squares of row " + std::to_string(block.keys[row]) + " is more than 64 bits hold");
      } else {
        sum += wide * wide;
      }
    }
    sums.push_back(sum);
  }
  return sums;
}

template <class T>
std::vector<Wide<T>> norm(const Block<T>& block) {
  std::vector<Wide<T>> norms = sum_of_squares(block);
  for (Wide<T>& value : norms) value = std::sqrt(value);
  return norms;
}

template <class T>
std::vector<Wide<T>> count(const Block<T>& block) {
  return std::vector<Wide<T>>(block.keys.size(), 1);
}

// Of equal magnitudes the first column is larger.
template <class T>
std::vector<Wide<T>> top(const Block<T>& block) {
  const Wide<T> most = block.argument.size() == 1 ? block.argument[0] : 0;
  const bool whole = most >= 1 && most <= static_cast<Wide<T>>(block.width()) && most == static_cast<Wide<T>>(static_cast<std::size_t>(most));
  if (!whole) {  // nor what is not a number
    throw Error(Code::invalid_argument, "top of a row wants one number as its argument, from 1 to " + std::to_string(block.width()));
  }
  const auto k = static_cast<std::ptrdiff_t>(most);
  std::vector<Wide<T>> found;
  std::vector<std::size_t> columns(block.width());
  for (std::size_t row = 0; row < block.keys.size(); ++row) {
    const auto values = block.rows.subspan(row * block.width(), block.width());
    std::iota(columns.begin(), columns.end(), std::size_t{0});
    std::partial_sort(columns.begin(), columns.begin() + k, columns.end(), [&](std::size_t one, std::size_t other) {
      const auto magnitude = [&](std::size_t column) {
        const auto value = static_cast<Wide<T>>(values[column]);
        if constexpr (std::is_integral_v<T>) return value < 0 ? -static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
        else return std::abs(value);
      };
      const auto a = magnitude(one), b = magnitude(other);
      return a > b || (a == b && one < other);
    });
    for (std::ptrdiff_t i = 0; i < k; ++i) found.push_back(static_cast<Wide<T>>(columns[static_cast<std::size_t>(i)]));
    for (std::ptrdiff_t i = 0; i < k; ++i) found.push_back(static_cast<Wide<T>>(values[columns[static_cast<std::size_t>(i)]]));
  }
  return found;
}

}  // namespace

template <class T>
void Functions::define(const std::string& table, const std::string& name, Function<T> function) {
  const std::lock_guard lock(mutex_);
  std::get<Named<T>>(defined_)[{table, name}] = std::move(function);
}

template <class T>
Function<T> Functions::find(const std::string& table, const std::string& name) const {
  {
    const std::lock_guard lock(mutex_);
    const Named<T>& defined = std::get<Named<T>>(defined_);
    if (const auto own = defined.find({table, name}); own != defined.end()) return own->second;
  }
  if (name == "sum_of_squares") return sum_of_squares<T>;
  if (name == "count") return count<T>;
  if (name == "top") return top<T>;
  if constexpr (std::is_floating_point_v<T>) {
    if (name == "norm") return norm<T>;
  }
  throw Error(Code::invalid_argument, "no function is called \"" + name + "\" here");
}

void Functions::clear() {
  const std::lock_guard lock(mutex_);
  defined_ = {};
}

template <class T>
Message CallRequest<T>::message(const Message& keys) const {
  if (name.size() > kLongestName) throw Error(Code::invalid_argument, "a function's name of " + std::to_string(name.size()) + " characters");
  if (argument.size() > kLongestArgument) {
    const std::string what = "an argument of " + std::to_string(argument.size()) + " numbers";
    throw Error(Code::invalid_argument, what, "", "at most " + std::to_string(kLongestArgument));
  }
  Message message;
  message.header = keys.header;
  const std::size_t of_argument = argument.size() * sizeof(Wide<T>), before = keys.body.size();
  message.body = Bytes(before + of_argument + name.size());
  std::byte* into = std::ranges::copy(keys.body, message.body.data()).out;
  into = std::ranges::copy(std::as_bytes(std::span(argument)), into).out;
  std::ranges::copy(std::as_bytes(std::span(name)), into);
  message.header.length = static_cast<std::uint32_t>(message.body.size());
  message.header.worker = static_cast<std::uint32_t>(name.size());
  return message;
}

template <class T>
CallRequest<T> CallRequest<T>::from(const Message& message) {
  CallRequest request;
  const std::size_t before = message.header.count * sizeof(Key), name = message.header.worker;
  const std::size_t of_argument = message.body.size() - before - name;
  request.argument.resize(of_argument / sizeof(Wide<T>));
  if (of_argument > 0) std::memcpy(request.argument.data(), message.body.data() + before, of_argument);
  request.name.assign(reinterpret_cast<const char*>(message.body.data()) + before + of_argument, name);
  return request;
}

void refuse_inside_function(const std::string& table) {
  if (inside) throw Error(Code::invalid_argument, "a function that runs on a server may not use tables", "table " + table);
}
InsideFunction::InsideFunction() { inside = true; }
InsideFunction::~InsideFunction() { inside = false; }

template struct CallRequest<float>;
template struct CallRequest<double>;
template struct CallRequest<std::int32_t>;
template struct CallRequest<std::int64_t>;
template void Functions::define(const std::string&, const std::string&, Function<float>);
template void Functions::define(const std::string&, const std::string&, Function<double>);
template void Functions::define(const std::string&, const std::string&, Function<std::int32_t>);
template void Functions::define(const std::string&, const std::string&, Function<std::int64_t>);
template Function<float> Functions::find(const std::string&, const std::string&) const;
template Function<double> Functions::find(const std::string&, const std::string&) const;
template Function<std::int32_t> Functions::find(const std::string&, const std::string&) const;
template Function<std::int64_t> Functions::find(const std::string&, const std::string&) const;

}  // namespace shoal::table
