// One client of Bösen (github.com/sailing-pmls/bosen), for bench/stragglers.py, bench/staleness.py and bench/linear.py: the same arithmetic, the same slow clocks and
// the same output as bench/table's programs, with Bösen's tables in place of ours. build.sh beside it builds it with Bösen outside this tree.
//
//   bosen_member MODE HOSTFILE CLIENT CLIENTS SSP|SSPPush STALENESS CLOCK_MS LENGTH [DATA [BATCH]]
//
// MODE staleness: LENGTH clocks are counted after 72; MODE stragglers: LENGTH epochs, 500 ratings a clock; MODE linear: LENGTH epochs, BATCH rows of all clients a
// clock, without pauses. Every client serves, too.
#include <petuum_ps_common/include/petuum_ps.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "bench/peers/linear_clock.h"
#include "bench/table/slow_clocks.h"
#include "shoal/learn/factorization.h"
#include "shoal/learn/order.h"

namespace {

using Row = petuum::DenseRow<float>;

struct Client {
  std::string hosts, model;
  std::uint32_t rank = 0, size = 1;
  int staleness = 0, length = 0;
  shoal::bench::SlowClocks clocks;
  shoal::learn::Ratings ratings;
  std::optional<shoal::bench::LinearClocks> linear;
};

void create(int id, int staleness, std::size_t rows, std::size_t width) {
  petuum::ClientTableConfig config;
  config.table_info.row_type = 0;
  config.table_info.table_staleness = staleness;
  config.table_info.row_capacity = config.table_info.dense_row_oplog_capacity = width;
  config.table_info.row_oplog_type = petuum::RowOpLogType::kDenseRowOpLog;
  config.process_cache_capacity = config.oplog_capacity = rows;
  petuum::PSTableGroup::CreateTable(id, config);
}

void read(petuum::Table<float>& table, int row, std::vector<float>& into) {
  petuum::RowAccessor holds;
  table.Get<Row>(row, &holds).CopyToVector(&into);
}

void add(petuum::Table<float>& table, int row, const float* values, std::size_t width) {
  petuum::DenseUpdateBatch<float> batch(0, static_cast<int>(width));
  for (std::size_t i = 0; i < width; ++i) batch[static_cast<int>(i)] = values[i];
  table.DenseBatchInc(row, batch);
}

void staleness(Client& client) {
  constexpr int rows = 8, warmup = 72, reach = 63;
  auto table = petuum::PSTableGroup::GetTableOrDie<float>(0);
  std::vector<float> row(client.size), mine(client.size);
  mine[client.rank] = 1;
  std::array<std::uint64_t, 2 * reach + 1> seen{};
  petuum::PSTableGroup::GlobalBarrier();
  shoal::Instant begin = shoal::steady_now();
  for (int clock = 0; clock < warmup + client.length; ++clock) {
    if (clock == warmup) begin = shoal::steady_now();
    for (int at = 0; at < rows; ++at) {
      read(table, at, row);
      for (std::uint32_t peer = 0; peer < client.size && clock >= warmup; ++peer) {
        if (peer != client.rank) ++seen[static_cast<std::size_t>(std::clamp(static_cast<int>(row[peer]) - clock, -reach, reach) + reach)];
      }
    }
    client.clocks.pause(static_cast<std::uint64_t>(clock), client.rank);
    for (int at = 0; at < rows; ++at) add(table, at, mine.data(), client.size);
    petuum::PSTableGroup::Clock();
  }
  const double seconds = shoal::seconds_between(begin, shoal::steady_now());
  petuum::PSTableGroup::GlobalBarrier();
  bool right = true;
  for (int at = 0; at < rows; ++at) {
    read(table, at, row);
    right = right && std::ranges::all_of(row, [&](float count) { return count == static_cast<float>(warmup + client.length); });
  }
  petuum::PSTableGroup::GlobalBarrier();
  std::printf("{\"seconds\": %.6f, \"right\": %s, \"seen\": [", seconds, right ? "true" : "false");
  for (std::size_t at = 0; at < seen.size(); ++at) std::printf("%s%lu", at ? ", " : "", seen[at]);
  std::printf("]}\n");
}

void stragglers(Client& client) {
  using namespace shoal::learn;
  const Ratings& ratings = client.ratings;
  FactorizationOptions how;
  how.batch = 500;
  const shoal::data::TripleSlice learnt = ratings.own.all(), held_out = ratings.own_held_out.all();
  const std::size_t width = how.width(), own = learnt.size(), clocks = (ratings.most - 1) / how.batch + 1;
  auto table = petuum::PSTableGroup::GetTableOrDie<float>(0);
  std::vector<float> users(ratings.own_users() * width), row(width), items, before;
  for (std::uint32_t user = 0; user < ratings.own_users(); ++user) {
    fill_normal(std::span(users).subspan(user * width, width), 0.1, how.seed, user * ratings.members + ratings.member, 0);
  }
  for (std::uint32_t item = ratings.member; item < ratings.items; item += ratings.members) {
    fill_normal(row, 0.1, how.seed, item, 1);
    add(table, static_cast<int>(item), row.data(), width);
  }
  petuum::PSTableGroup::GlobalBarrier();
  std::vector<std::size_t> place(ratings.items);
  const auto collect = [&](const auto& columns, std::vector<std::uint32_t>& different) {
    different.assign(columns.begin(), columns.end());
    std::ranges::sort(different);
    different.erase(std::ranges::unique(different).begin(), different.end());
    items.clear();
    for (const std::uint32_t item : different) {
      place[item] = items.size();
      read(table, static_cast<int>(item), row);
      items.insert(items.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(width));
    }
  };
  const auto user_of = [&](std::uint32_t user) { return std::span(users).subspan(user * width, width); };
  std::uint64_t ticks = 0;
  std::vector<std::uint32_t> different, columns;
  for (int epoch = 0; epoch < client.length; ++epoch) {
    const shoal::Instant begin = shoal::steady_now();
    const auto order = shuffled(static_cast<std::uint32_t>(own), how.seed, static_cast<unsigned>(epoch) + 1, ratings.member);
    for (std::size_t clock = 0; clock < clocks; ++clock) {
      const auto batch = std::span(order).subspan(clock * own / clocks, (clock + 1) * own / clocks - clock * own / clocks);
      columns.clear();
      for (const std::uint32_t rating : batch) columns.push_back(learnt.columns[rating]);
      collect(columns, different);
      before = items;
      const auto step = static_cast<float>(how.step.at(epoch + static_cast<double>(clock) / static_cast<double>(clocks)));
      for (const std::uint32_t rating : batch) {
        descend(user_of(learnt.rows[rating]), std::span(items).subspan(place[learnt.columns[rating]], width),
                learnt.values[rating] - static_cast<float>(ratings.mean), step, how);
      }
      for (std::size_t i = 0; i < items.size(); ++i) items[i] -= before[i];
      for (const std::uint32_t item : different) add(table, static_cast<int>(item), items.data() + place[item], width);
      client.clocks.pause(ticks++, client.rank);
      petuum::PSTableGroup::Clock();
    }
    petuum::PSTableGroup::GlobalBarrier();
    collect(held_out.columns, different);
    double squares = 0;
    for (std::size_t i = 0; i < held_out.size(); ++i) {
      const auto item = std::span<const float>(items).subspan(place[held_out.columns[i]], width);
      const double error = held_out.values[i] - ratings.mean - product(user_of(held_out.rows[i]), item, how);
      squares += error * error;
    }
    petuum::PSTableGroup::GlobalBarrier();
    std::printf("{\"epoch\": %d, \"squares\": %.9g, \"held_out\": %zu, \"seconds\": %.6f, \"clocks\": %lu}\n", epoch + 1, squares, held_out.size(),
                shoal::seconds_between(begin, shoal::steady_now()), ticks);
    std::fflush(stdout);
  }
}

void linear(Client& client) {
  auto& clocks = *client.linear;
  const std::size_t width = clocks.width();
  auto table = petuum::PSTableGroup::GetTableOrDie<float>(0);
  std::vector<float> row(width), values, changes;
  petuum::PSTableGroup::GlobalBarrier();
  for (int epoch = 0; epoch < client.length; ++epoch) {
    const shoal::Instant begin = shoal::steady_now();
    clocks.begin_epoch(static_cast<unsigned>(epoch));
    double loss = 0;
    for (std::size_t clock = 0; clock < clocks.clocks(); ++clock) {
      const auto keys = clocks.keys(clock);
      values.clear();
      for (const shoal::table::Key key : keys) {
        read(table, static_cast<int>(key), row);
        values.insert(values.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(width));
      }
      changes.resize(values.size());
      loss += clocks.learn(static_cast<unsigned>(epoch), clock, values, changes);
      for (std::size_t i = 0; i < keys.size(); ++i) add(table, static_cast<int>(keys[i]), changes.data() + i * width, width);
      petuum::PSTableGroup::Clock();
    }
    petuum::PSTableGroup::GlobalBarrier();
    if (client.rank != 0) continue;
    std::printf("{\"epoch\": %d, \"seconds\": %.6f, \"own loss\": %.6f}\n", epoch + 1, shoal::seconds_between(begin, shoal::steady_now()), loss / static_cast<double>(clocks.own()));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 9) return std::fprintf(stderr, "see the head of bosen_member.cc\n"), 2;
  const std::string mode = argv[1];
  Client client{.hosts = argv[2], .model = argv[5], .rank = static_cast<std::uint32_t>(std::atoi(argv[3])),
                .size = static_cast<std::uint32_t>(std::atoi(argv[4])), .staleness = std::atoi(argv[6]), .length = std::atoi(argv[8])};
  client.clocks.milliseconds = std::atof(argv[7]);
  google::InitGoogleLogging(argv[0]);
  std::size_t rows = 8, width = client.size;
  void (*measure)(Client&) = staleness;
  if (mode == "stragglers") {
    shoal::learn::Source source;
    source.files = {argv[9]};
    client.ratings = shoal::learn::read_ratings(source, client.rank, client.size);
    rows = client.ratings.items;
    width = 32;
    measure = stragglers;
  } else if (mode == "linear") {
    client.linear.emplace(argv[9], static_cast<std::size_t>(std::atoi(argv[10])), client.rank, client.size);
    rows = client.linear->rows();
    width = client.linear->width();
    measure = linear;
  }
  petuum::TableGroupConfig group;
  group.num_total_clients = static_cast<int>(client.size);
  group.num_local_app_threads = 1;
  group.client_id = static_cast<int>(client.rank);
  group.consistency_model = client.model == "SSP" ? petuum::SSP : petuum::SSPPush;
  petuum::GetHostInfos(client.hosts, &group.host_map);
  petuum::PSTableGroup::RegisterRow<Row>(0);
  petuum::PSTableGroup::Init(group, true);
  create(0, client.staleness, rows, width);
  petuum::PSTableGroup::CreateTableDone();
  measure(client);
  petuum::PSTableGroup::ShutDown();
}
