// Any bytes as messages to a server and to a reader of a table: refused in words, or taken. Run fuzz_table_message [corpus folder].
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/table/copy.h"
#include "shoal/table/shard.h"

namespace {

using namespace shoal;
using namespace shoal::table;

// The next message of the input, as the network would hand it over; false at its end, or where the header cannot be one.
bool next_message(std::span<const std::byte>& input, bool to_server, Message& message) {
  if (input.size() < sizeof(Header)) return false;
  std::memcpy(&message.header, input.data(), sizeof(Header));
  input = input.subspan(sizeof(Header));
  if (!fault_of(message.header, to_server).empty() || message.header.length > input.size()) return false;
  message.body = Bytes(message.header.length);
  std::ranges::copy(input.first(message.header.length), message.body.data());
  input = input.subspan(message.header.length);
  return true;
}

template <class Take>
void feed(std::span<const std::byte> input, bool to_server, const Take& take) {
  try {
    for (Message message; next_message(input, to_server, message); message = {}) take(std::move(message));
  } catch (const Error&) {
  }
}

const TakeCut nobody = [](net::Rank, const Message&, const Spec&, Clock, const Rule&, std::unique_ptr<Image> image) {
  while (!image->next().empty()) {
  }
};
const OffLoop at_once = [](const std::function<void()>& job, const std::function<void()>& then) {
  job();
  then();
};
const Send nowhere = [](net::Rank, std::vector<Message>) {};

// To a server of that table, whose other worker is lost then, and to a reader who has rows asked for and some added.
template <class T>
void feed_both(const Spec& spec, std::span<const std::byte> input) {
  const Workers workers({0, 1}, 1);
  const table::Placement placement({0, 1}, 2);
  const auto shard = make_shard(spec, workers, 2, true, {nowhere, [](net::Rank) { return true; }, nobody, [] { return Instant{}; }, at_once});
  shard->take(0, Message::of_text(Kind::open, id_of(spec), text_of(spec)));
  LastClocks last_clocks(workers, 2, {[&](std::uint64_t, std::uint32_t worker) { return shard->completed(worker); },
                                           [&](std::uint64_t) { return shard->reached(); }, [&](std::uint64_t) { return shard->met(); },
                                           [&](std::uint64_t, const Last& last) { shard->cut(last); }, [](net::Rank, const Message&) {}});
  feed(input, true, [&](Message message) {
    message.header.kind == Kind::last_clocks ? last_clocks.take(1, message) : shard->take(0, std::move(message));
  });
  shard->lose(1);
  last_clocks.lose(1, {id_of(spec)});
  Copy<T> copy(spec, workers, 0, placement, {Holders({0, 1}), Holders({1, 0})},
               {nowhere, [] { return Instant{}; }, std::size_t{1} << 20, std::size_t{1} << 20, std::make_shared<ServerBytes>(), BytesPool::of_process()});
  const std::vector<Key> keys{1, 2, 3};
  copy.ask(0, keys);
  copy.add(0, keys, std::vector<T>(keys.size() * spec.width, 1));
  copy.tick(0);
  feed(input, false, [&](Message message) { copy.take(1, std::move(message)); });
}

}  // namespace

SHOAL_FUZZ(table_message, data, size) {
  const auto input = std::as_bytes(std::span(data, size));
  try {
    spec_from({reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 200)});
  } catch (const Error&) {
  }
  for (const Consistency& consistency : {Consistency(Bsp{}), Consistency(Essp{1}), Consistency(Cvap{1, 0.5, true}), Consistency(Pssp{1, 1}), Consistency(Async{})}) {
    for (const Rule& rule : {Rule{}, Rule::adam(0.1), Rule::adaptive_revision(0.1)}) {
      feed_both<float>({.name = "f", .type = DType::f32, .width = 4, .consistency = consistency, .rule = rule}, input);
    }
  }
  for (const Encoding encoding : {Encoding::bf16, Encoding::int8}) {
    feed_both<float>({.name = "f", .type = DType::f32, .width = 4, .consistency = Essp{1}, .encoding = encoding}, input);
    feed_both<double>({.name = "f", .type = DType::f64, .width = 4, .consistency = Async{}, .encoding = encoding}, input);
  }
  feed_both<std::int64_t>({.name = "f", .type = DType::i64, .width = 4, .consistency = Essp{1}}, input);
  return 0;
}
