// What a function returns for rows, to who called it.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/table/addressed.h"
#include "shoal/table/tables.h"

namespace shoal::table {

template <class T>
Called<T> Table<T>::call(const std::string& function, std::span<const Key> keys, std::span<const Wide<T>> argument) {
  const std::string where = "table " + spec_.name;
  const auto mismatch = [&](const std::string& what) { return Error(Code::mismatch, what, where, "run the same program on all members"); };
  refuse_inside_function(spec_.name);
  const CallRequest<T> request{function, {argument.begin(), argument.end()}};
  const std::uint64_t id = id_of(spec_);
  std::vector<Key> distinct(keys.begin(), keys.end());  // of a key that repeats a function would see two rows, and write one
  std::ranges::sort(distinct);
  const auto repeated = std::ranges::unique(distinct);
  distinct.erase(repeated.begin(), repeated.end());
  auto questions = addressed<T>(servers_->all_shards(), Kind::call, id, distinct, {}, spec_.width * sizeof(T));
  for (auto& of_shard : questions) {
    if (keys.empty()) of_shard = alone(Message::of_rows(Kind::call, id, 0, 0));
    for (Message& question : of_shard) {
      question.header.clock = needed_age(consistency(), clock());
      question = request.message(question);
    }
  }
  const auto answers = in_turn(Step::question, [&] { return servers_->ask(*copy_, std::move(questions)); });
  waiting_.until([&] { return answers->complete(); }, *answers, "a function's answer from servers of table ", spec_.name);
  if (!answers->refused().empty()) throw Error(answers->lost() ? Code::peer_lost : Code::invalid_argument, answers->refused(), where);

  Called<T> called{{}, kLastClock};
  std::optional<std::size_t> each;                 // values of a row
  std::map<Key, const Wide<T>*> found;
  for (const Message& answer : answers->messages()) {
    if (answer.header.kind != Kind::called) throw mismatch("a server answered something else");
    called.clock = std::min(called.clock, answer.header.clock);
    const std::size_t rows = answer.header.count;
    const auto* const values = reinterpret_cast<const Wide<T>*>(answer.body.data() + rows * sizeof(Key));
    const std::size_t count = (answer.body.size() - rows * sizeof(Key)) / sizeof(Wide<T>), of_each = rows == 0 ? count : count / rows;
    if (rows == 0 && count == 0) continue;         // a server without rows
    if (each.value_or(of_each) != of_each) throw mismatch("function " + function + " returned unlike numbers of values");
    each = of_each;
    for (std::size_t row = 0; row < rows; ++row) found[answer.keys()[row]] = values + row * of_each;
    if (answer.header.ends != Ends::nothing) in_turn(Step::forget, [&] { copy_->forget(answer.keys()); });
    if (rows > 0) continue;
    called.values.resize(count);
    for (std::size_t i = 0; i < count; ++i) called.values[i] += values[i];
  }
  for (const Key key : keys) {
    const auto row = found.find(key);
    if (row == found.end()) throw mismatch("no server answered for row " + std::to_string(key));
    called.values.insert(called.values.end(), row->second, row->second + each.value_or(0));
  }
  if (keys.empty() && !each) called.values.assign(1, 0);
  return called;
}

template Called<float> Table<float>::call(const std::string&, std::span<const Key>, std::span<const double>);
template Called<double> Table<double>::call(const std::string&, std::span<const Key>, std::span<const double>);
template Called<std::int32_t> Table<std::int32_t>::call(const std::string&, std::span<const Key>, std::span<const std::int64_t>);
template Called<std::int64_t> Table<std::int64_t>::call(const std::string&, std::span<const Key>, std::span<const std::int64_t>);

}  // namespace shoal::table
