// Rows together with the state of their table's rule, to and from a worker that copies none of them.
#include <map>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/table/addressed.h"
#include "shoal/table/tables.h"

namespace shoal::table {

template <class T>
void Table<T>::fetch(std::span<const Key> keys, std::span<T> rows) {
  refuse_inside_function(spec_.name);
  const std::size_t width = full_width();
  auto questions = addressed<T>(servers_->all_shards(), Kind::fetch, id_of(spec_), keys, {}, width * sizeof(T));
  for (auto& of_shard : questions) {
    for (Message& question : of_shard) question.header.clock = needed_age(consistency(), clock());
  }
  const auto answers = in_turn(Step::question, [&] { return servers_->ask(*copy_, std::move(questions)); });
  waiting_.until([&] { return answers->complete(); }, *answers, "rows of table ", spec_.name);
  if (!answers->refused().empty()) throw Error(answers->lost() ? Code::peer_lost : Code::mismatch, answers->refused(), "table " + spec_.name);
  std::map<Key, const T*> found;
  for (const Message& answer : answers->messages()) {
    if (const std::string fault = fault_of(answer, width * sizeof(T)); answer.header.kind != Kind::fetched || !fault.empty()) {
      throw Error(Code::mismatch, "a server sent " + fault, "table " + spec_.name, "run the same program on all members");
    }
    for (std::size_t i = 0; i < answer.keys().size(); ++i) found[answer.keys()[i]] = answer.values<T>().data() + i * width;
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto row = found.find(keys[i]);
    if (row == found.end()) throw Error(Code::mismatch, "no server sent row " + std::to_string(keys[i]), "table " + spec_.name);
    set<T>(rows.subspan(i * width, width), {row->second, width});
  }
}

template <class T>
void Table<T>::put(std::span<const Key> keys, std::span<const T> rows) {
  refuse_inside_function(spec_.name);
  in_turn(Step::put, [&] { copy_->put(keys, rows); });
  waiting_.until([&] { return copy_->assigning() == 0; }, *copy_, "servers of table ", spec_.name);
}

template void Table<float>::fetch(std::span<const Key>, std::span<float>);
template void Table<double>::fetch(std::span<const Key>, std::span<double>);
template void Table<std::int32_t>::fetch(std::span<const Key>, std::span<std::int32_t>);
template void Table<std::int64_t>::fetch(std::span<const Key>, std::span<std::int64_t>);
template void Table<float>::put(std::span<const Key>, std::span<const float>);
template void Table<double>::put(std::span<const Key>, std::span<const double>);
template void Table<std::int32_t>::put(std::span<const Key>, std::span<const std::int32_t>);
template void Table<std::int64_t>::put(std::span<const Key>, std::span<const std::int64_t>);

}  // namespace shoal::table
