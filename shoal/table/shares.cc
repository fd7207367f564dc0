#include "shoal/table/shares.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>

#include "shoal/core/error.h"
#include "shoal/core/fnv.h"
#include "shoal/core/host.h"
#include "shoal/core/memory.h"
#include "shoal/core/text.h"

namespace shoal::table {
namespace {

constexpr std::uint64_t kMegabyte = 1'000'000;

// What that variable says; none: it says nothing.
std::optional<std::string> said_in(const char* variable) {
  const char* const said = std::getenv(variable);
  return said && *said ? std::optional<std::string>(said) : std::nullopt;
}

std::optional<std::uint64_t> megabytes_in(const char* variable) {
  const auto said = said_in(variable);
  if (!said) return std::nullopt;
  const auto refuse = [variable](const std::string& what) { throw Error(Code::invalid_argument, what, variable, "16GB"); };
  std::uint64_t bytes = 0;
  try {
    bytes = parse_size(*said);
  } catch (const Error& error) {
    refuse(error.fact());
  }
  if (bytes < kMegabyte || bytes > kMegabyte * kMegabyte * 1000) refuse(*said + " is not between 1 MB and 1,000 TB");
  return bytes / kMegabyte;
}

Memory own() {
  if (const auto said = megabytes_in("SHOAL_TABLE_MEMORY")) return {*said, 0};
  std::error_code none;
  const std::string machine = boot_id() + std::filesystem::read_symlink("/proc/self/ns/cgroup", none).string();
  Fnv1a digest;
  digest.add_bytes(std::as_bytes(std::span(machine)));
  return {memory_here() / kMegabyte, digest.value() >> 1 | 1};
}

std::uint32_t parts_here() {
  constexpr const char* variable = "SHOAL_TABLE_PARTS";
  const auto said = said_in(variable);
  if (!said) return 1;
  std::uint32_t parts = 0;
  const char* const end = said->data() + said->size();
  const auto [rest, fault] = std::from_chars(said->data(), end, parts);
  if (fault == std::errc{} && rest == end && parts >= 1 && parts <= kBuckets) return parts;
  throw Error(Code::invalid_argument, *said + " is not between 1 and " + std::to_string(kBuckets), variable, "4");
}

// What all members have said of themselves: of memory, and the most parts.
void agree(net::Transport& transport, std::uint16_t channel, TablesOptions& options, bool is_first) {
  const Memory here = own();
  options.parts = parts_here();
  if (transport.size() == 1) return;
  Tables tables(transport, {.patience = options.patience, .channel = channel});
  auto all = tables.worker().open<std::int64_t>({.name = "members", .width = 3, .consistency = Bsp{}});
  const Key key = transport.rank();
  const std::int64_t values[] = {static_cast<std::int64_t>(here.megabytes), static_cast<std::int64_t>(here.machine), options.parts};
  all.add({&key, 1}, values);
  all.barrier();
  std::vector<Key> ranks(transport.size());
  std::iota(ranks.begin(), ranks.end(), Key{0});
  std::vector<std::int64_t> rows(3 * ranks.size());
  all.read(ranks, rows);
  all.barrier();                     // all have read
  tables.leave();
  std::vector<Memory> members;
  for (const Key rank : ranks) {
    members.push_back({static_cast<std::uint64_t>(rows[3 * rank]), static_cast<std::uint64_t>(rows[3 * rank + 1])});
    options.parts = std::max(options.parts, static_cast<std::uint32_t>(rows[3 * rank + 2]));
  }
  options.shares = shares_of(members);
  const std::size_t most = most_parts(members.size());
  if (!is_first) options.parts = static_cast<std::uint32_t>(std::min<std::size_t>(options.parts, most));
  if (options.parts > most) {
    throw Error(Code::invalid_argument, std::to_string(options.parts) + " parts of the rows of each of " + std::to_string(members.size()) + " members", "SHOAL_TABLE_PARTS",
                "1 to " + std::to_string(most));
  }
}

}  // namespace

std::vector<std::uint64_t> shares_of(std::span<const Memory> members) {
  std::vector<std::uint64_t> shares;
  for (const Memory& member : members) {
    const auto with = member.machine == 0 ? 1 : std::ranges::count(members, member.machine, &Memory::machine);
    shares.push_back(std::max<std::uint64_t>(1, member.megabytes / static_cast<std::uint64_t>(with)));
  }
  return shares;
}

TablesOptions options_here(net::Transport& transport, Nanoseconds patience, std::uint16_t channel, std::uint16_t meeting, bool is_first) {
  TablesOptions options{.patience = patience, .channel = channel, .order = OrderKept::from_environment()};
  agree(transport, meeting, options, is_first);
  if (const auto said = megabytes_in("SHOAL_TABLE_COPIES")) options.most_copies = *said * kMegabyte;
  if (const auto said = said_in("SHOAL_COLD_ROWS")) options.cold_rows = *said;
  return options;
}

void serve_beside(TablesOptions& options, net::Rank workers, net::Rank servers) {
  options.workers.resize(workers);
  std::iota(options.workers.begin(), options.workers.end(), net::Rank{0});
  if (servers >= workers) {
    options.servers.resize(servers);
    std::iota(options.servers.begin(), options.servers.end(), workers);
    return;
  }
  options.shares.assign(workers, workers - servers);
  options.shares.resize(workers + servers, 2 * (std::uint64_t{workers} - 1));
}

}  // namespace shoal::table
