// Functions that run where rows are, on their server: less travels than if rows came to who asks. A program defines its own, under a name, alike on
// all members; `sum_of_squares`, `norm` (of floats), `count` and `top` every table has.
//
//   tables.define<float>("weights", "clip", [](const Block<float>& block) { ...; return std::vector<double>{}; });
//   weights.call("sum_of_squares", keys, {}).values        // one for each key
//   weights.call("count", {}, {}).values                   // no keys: the sum over all rows that servers have
//   weights.call("top", keys, {3})                         // for each row the columns of its 3 largest values, and these, by magnitude
//
// A call by keys sees settled rows that have all of the clocks that a read would need, and nothing of clocks that are not complete, where the
// consistency tells clocks apart; what it writes into them is as assigned: below what is not settled. While it runs nothing else happens to its
// server's part of this table, so rows of one server (up to kMessageBytes at a time) change together or not at all. A call without keys sees every
// server's rows as they were at one moment, while they go on changing, and may write nothing.
//
// Functions run on a thread of their own, one at a time on each member; they must not use tables. What they throw is one line at who called.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "shoal/table/message.h"

namespace shoal::table {

// What calls take and return: f64, for tables of integers i64.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

template <class T>
struct Block {                       // rows of one server
  std::span<const Key> keys;         // at least one
  std::span<T> rows;                 // (keys.size(), width), one below the other; what is written here becomes their values
  std::span<const Wide<T>> argument; // of the call
  std::size_t width() const { return rows.size() / keys.size(); }
};

// Returns as many values for each row as for any other, maybe none, in the order of keys.
template <class T>
using Function = std::function<std::vector<Wide<T>>(const Block<T>& block)>;

// Threads: any.
class Functions {
 public:
  // Again: replaces it.
  template <class T>
  void define(const std::string& table, const std::string& name, Function<T> function);
  // That table's, or one that every table has. Throws Error{invalid_argument} naming what there is not.
  template <class T>
  Function<T> find(const std::string& table, const std::string& name) const;
  void clear();

 private:
  using Name = std::pair<std::string, std::string>;  // of the table, of the function
  template <class T>
  using Named = std::map<Name, Function<T>>;
  mutable std::mutex mutex_;         // guards what is defined
  std::tuple<Named<float>, Named<double>, Named<std::int32_t>, Named<std::int64_t>> defined_;
};

// A message of kind call: keys, the argument and the function's name.
template <class T>
struct CallRequest {
  static constexpr std::size_t kLongestName = 200, kLongestArgument = 4096;
  std::string name;
  std::vector<Wide<T>> argument;

  // keys: as a message of kind call has them alone; none: all rows. Throws Error{invalid_argument} where either is too long.
  Message message(const Message& keys) const;
  static CallRequest from(const Message& message);
};

// Throws Error{invalid_argument} where this thread runs a function: it may wait for nothing that tables do.
void refuse_inside_function(const std::string& table);
class InsideFunction {
 public:
  InsideFunction();
  ~InsideFunction();
  InsideFunction(const InsideFunction&) = delete;
};

}  // namespace shoal::table
