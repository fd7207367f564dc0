// Any bytes as a part of a snapshot and as its index: refused in words, or read; and what was read as rows of a server. Run
// fuzz_table_image [corpus folder].
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/table/part_file.h"
#include "shoal/table/shard.h"

using namespace shoal;
using namespace shoal::table;

SHOAL_FUZZ(table_image, data, size) {
  static const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("shoal-fuzz-" + std::to_string(::getpid()));
  static const Spec spec{.name = "f", .type = DType::f32, .width = 2, .consistency = Bsp{}, .rule = Rule::adam(0.1)};
  static const Cut cut{spec, 3, spec.rule, "0123456789abcdef", 2, 1};
  std::filesystem::create_directories(folder);
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    cut_from(text, folder);
  } catch (const Error&) {
  }
  // Behind a head that is right as far as the first byte says, so that chunks are reached, too.
  const std::string head = text_of(cut);
  const std::uint64_t length = head.size(), part = 1;
  std::string whole = "SHOALTAB" + std::string(reinterpret_cast<const char*>(&length), 8) + head + std::string(reinterpret_cast<const char*>(&part), 8);
  if (size > 0) whole.resize(whole.size() * data[0] / 255);
  std::ofstream(part_file(folder, cut, 1), std::ios::binary) << whole << text.substr(size > 0);
  const auto shard = make_shard(spec, Workers({0}, 1), 1, false,
                                {[](net::Rank, std::vector<Message>) {}, [](net::Rank) { return true; },
                                 [](net::Rank, const Message&, const Spec&, Clock, const Rule&, std::unique_ptr<Image>) {}, [] { return Instant{}; }});
  try {
    PartReader reader(folder, cut, 1);
    for (Bytes chunk = reader.next(); !chunk.empty(); chunk = reader.next()) {
      Message message = Message::of_rows(Kind::put, id_of(spec), chunk.size() / chunk_row_bytes(spec), chunk_row_bytes(spec) - sizeof(Key));
      std::memcpy(message.body.data(), chunk.data(), chunk.size());
      shard->take(0, std::move(message));
    }
  } catch (const Error&) {
  }
  return 0;
}
