// Members die while workers go on, on the scripted network: rows that they held are at hand elsewhere, nothing of those that live is lost or
// counted twice, and what a dead worker added counts up to one of its clocks, the same at all servers. SHOAL_SEEDS widens the search,
// SHOAL_FIRST_SEED begins it elsewhere.
#include <functional>
#include <map>

#include "tests/from_environment.h"
#include "tests/table/scripted_workers.h"

namespace shoal::table {
namespace {

constexpr std::uint64_t kSeeds = 80;

ScriptedOptions losing(const Consistency& consistency, std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  ScriptedOptions options;
  options.consistency = consistency;
  options.seed = seed;
  options.members = static_cast<net::Rank>(2 + seed % 4);
  options.workers_a_member = static_cast<std::uint32_t>(1 + seed % 3 / 2);
  options.uneven = seed % 2 == 0;
  options.parts = static_cast<std::uint32_t>(1 + seed % 11 / 7);          // mostly 1
  if (seed % 5 == 0 && options.members > 2) options.servers = {0, options.members - 1};
  if (seed % 3 == 0) options.workers = {0, 1};  // the others only serve
  options.remainder = draw() % 2 == 0 && !value_bound(consistency, 0);  // what is left at the end is added without asking
  if (draw() % 2 == 0) options.network.rate = 1e5;  // who dies has not sent all that it said
  if (seed % 7 == 0) options.most_under_way = 1;                          // a worker waits until servers have counted in all of it
  const auto first = static_cast<net::Rank>(draw() % options.members);
  options.kills.emplace_back(first, std::chrono::microseconds(draw() % 60'000));
  if (options.members > 3 && options.servers.empty() && draw() % 2 == 0) {  // one that holds none of the same rows
    options.kills.emplace_back((first + 2) % options.members, std::chrono::microseconds(draw() % 60'000));
  }
  return options;
}

// All but one may die, one after the other, as soon as somebody else has what they hold: while it is handed over, and who gives or takes it, too.
ScriptedOptions losing_again(const Consistency& consistency, std::uint64_t seed) {
  ScriptedOptions options = losing(consistency, seed);
  std::mt19937_64 draw(seed + 1'000'000);
  options.members = static_cast<net::Rank>(3 + seed % 3);
  options.servers.clear();
  if (seed % 5 == 0) options.servers = {0, 1, options.members - 1};
  options.kills.clear();
  options.spares_last_holders = true;
  options.clocks = 20;
  std::vector<net::Rank> order(options.members);
  std::iota(order.begin(), order.end(), net::Rank{0});
  std::ranges::shuffle(order, draw);
  Nanoseconds at = std::chrono::microseconds(draw() % 30'000);
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    options.kills.emplace_back(order[i], at);
    const std::uint64_t within = draw() % 2 == 0 ? 3'000 : 30'000;  // drawn by itself: compilers differ in which operand comes first
    at += std::chrono::microseconds(draw() % within);
  }
  return options;
}

// Shards move while workers go on, and some members die.
ScriptedOptions moving(const Consistency& consistency, std::uint64_t seed) {
  ScriptedOptions options = losing_again(consistency, seed);
  std::mt19937_64 draw(seed + 2'000'000);
  if (seed % 3 == 0) options.kills.clear();
  if (seed % 3 == 1) options.kills.resize(1);
  const std::size_t servers = options.servers.empty() ? options.members : options.servers.size();
  for (int i = 0; i < 6; ++i) {
    const std::size_t to = draw() % servers;
    options.moves.push_back({std::chrono::microseconds(draw() % 60'000), draw() % (servers * options.parts),
                             options.servers.empty() ? static_cast<net::Rank>(to) : options.servers[to]});
  }
  return options;
}

// Members go in good order, one after the other, while shards move and another one dies.
ScriptedOptions departing(const Consistency& consistency, std::uint64_t seed) {
  ScriptedOptions options = moving(consistency, seed);
  std::mt19937_64 draw(seed + 3'000'000);
  options.kills.resize(std::min<std::size_t>(options.kills.size(), seed % 2));
  const auto first = static_cast<net::Rank>(draw() % options.members);
  for (net::Rank i = 0; i + 2 < options.members; ++i) {
    const auto rank = (first + i) % options.members;
    options.departures.emplace_back(rank, std::chrono::microseconds(draw() % 60'000));
  }
  if (options.servers.empty()) return options;
  const auto stays = [server = options.servers.front()](const auto& goes) { return goes.first == server; };
  std::erase_if(options.departures, stays);
  std::erase_if(options.kills, stays);
  return options;
}

struct Kind {
  Consistency consistency;
  Encoding encoding = Encoding::none;
  Rule rule{};
};
std::vector<Kind> kinds(const std::vector<Consistency>& any) { return {any.begin(), any.end()}; }

// Increments are ones. Where the rule steps they are gradients: rows fall, by steps that depend on nobody else's. each: whenever a message has come.
template <class T = std::int64_t>
void expect_survival(const std::vector<Kind>& any, ScriptedOptions (*drawn)(const Consistency&, std::uint64_t) = losing,
                     const std::vector<std::uint64_t>& once_found = {},
                     const std::function<void(ScriptedWorkers<T>&)>& each = {}) {
  using Workers = ScriptedWorkers<T>;
  int cut_short = 0, deaths = 0, runs = 0;
  std::vector<std::uint64_t> tried = once_found;
  if (tried.empty()) std::ranges::copy(seeds(kSeeds), std::back_inserter(tried));
  for (const std::uint64_t seed : tried) {
    const auto& [consistency, encoding, rule] = drawn_from(any, seed);
    ++runs;
    SCOPED_TRACE(name(consistency) + ", " + name(rule) + ", " + name(encoding) + ", seed " + std::to_string(seed));
    ScriptedOptions options = drawn(consistency, seed);
    options.encoding = encoding;
    options.rule = rule;
    options.ones = true;
    if (encoding == Encoding::none && seed % 2 == 0) {
      options.width = 64;
      options.spread = Spread::some;
    }
    Workers counts(options);
    const T down = rule.steps() ? -1 : 1;
    // What is not significant leaves later, of its row: of who is lost rows then have unlike numbers of clocks.
    const bool by_clock =
        clocked(consistency) && !leaves_at_once(consistency) && longest_stay(consistency) == 0 && !rule.steps();
    std::vector<std::vector<bool>> fits(counts.size(), std::vector<bool>(static_cast<std::size_t>(options.clocks) + 2, true));
    counts.run([&, rule = rule, consistency = consistency](std::uint32_t reader, Clock clock, Key key, std::span<const T> row) {
      for (std::uint32_t worker = 0; worker < counts.size(); ++worker) {
        const bool over = clock == Workers::kOver;
        EXPECT_LE(down * row[worker], down * counts.added(worker, key, counts.clock(worker) + 1)) << "of worker " << worker;
        if (counts.has_departed(worker) && !counts.is_dead(worker) && over) {
          EXPECT_EQ(row[worker], counts.added(worker, key, counts.clock(worker) + 1)) << "of worker " << worker << ", who went";
        } else if (!counts.is_dead(worker)) {
          const Clock whole = std::min(needed_age(consistency, clock), counts.clock(worker)) - longest_stay(consistency);
          const Clock surely = (worker == reader && !rule.steps()) || over ? clock : whole;
          EXPECT_GE(down * row[worker], down * counts.added(worker, key, surely))
              << "key " << key << " reader " << reader << " at clock " << clock << " of worker " << worker;
        }
        if (!over || !counts.is_dead(worker) || !by_clock) continue;
        for (std::size_t cut = 0; cut < fits[worker].size(); ++cut) {
          fits[worker][cut] = fits[worker][cut] && row[worker] == counts.added(worker, key, static_cast<Clock>(cut));
        }
      }
    }, each ? std::function<void()>([&] { each(counts); }) : nullptr);
    deaths += counts.deaths();
    for (std::uint32_t worker = 0; worker < counts.size(); ++worker) {
      EXPECT_TRUE(std::ranges::count(fits[worker], true))
          << "of worker " << worker << " some rows count more clocks than others";
      cut_short += counts.is_dead(worker) && counts.clock(worker) > 0;
    }
  }
  if (drawn != moving && drawn != departing) {
    EXPECT_GT(cut_short, 0) << "nobody died at work";
  }
  if (drawn == losing_again) {
    EXPECT_GT(deaths, runs) << "nobody died twice";
  }
}

TEST(Losses, whole_clocks_stay_whole) { expect_survival(kinds({Bsp{}})); }
TEST(Losses, with_bounded_staleness) { expect_survival(kinds({Ssp{0}, Ssp{3}})); }
TEST(Losses, with_pushed_rows) { expect_survival(kinds({Essp{0}, Essp{2}})); }
TEST(Losses, with_staleness_that_changes_and_updates_that_wait) { expect_survival(kinds({Dssp{0, 3}})); }
TEST(Losses, with_updates_that_stay) { expect_survival(kinds({Significance{0.5, 2}, Significance{1e9, 3}})); }
TEST(Losses, where_updates_are_seen_at_once) { expect_survival(kinds({Cap{2}, Async{}, Vap{3}, Cvap{2, 3}})); }

const std::vector<Consistency> kAllLosses{
    Bsp{}, Ssp{0}, Ssp{3}, Essp{0}, Essp{2}, Dssp{0, 3}, Significance{0.5, 2}, Significance{1e9, 3}, Cap{2}, Async{}, Vap{3}, Cvap{2, 3}};

ScriptedOptions any_with_few_rows(const Consistency& consistency, std::uint64_t seed) {
  constexpr ScriptedOptions (*each[])(const Consistency&, std::uint64_t) = {losing, losing_again, moving, departing};
  ScriptedOptions options = each[seed % 4](consistency, seed / 4);
  options.keys = 3;
  return options;
}

// Goal: whoever reads, from whichever holder, whatever is lost or moves, at every moment, also while some have not heard of a loss: of what one worker
// added to a row, no copy has more than another by more than the bound, or one increment. And some do wait for it.
TEST(Losses, values_stay_near_where_they_are_bounded) {
  std::uint64_t waits = 0;
  const auto near = [&](ScriptedWorkers<std::int64_t>& counts) {
    for (Key key = 0; key < counts.keys(); ++key) {
      double most = 1;
      std::vector<std::vector<std::int64_t>> copies;
      for (std::uint32_t worker = 0; worker < counts.size(); ++worker) {
        if (counts.is_dead(worker) || counts.has_departed(worker)) continue;
        most = std::max(most, *value_bound(counts.table(worker).spec().consistency, 0));
        if (auto row = counts.peek(worker, key)) copies.push_back(*std::move(row));
      }
      for (std::uint32_t worker = 0; worker < counts.size() && !copies.empty(); ++worker) {
        const auto [least, greatest] = std::ranges::minmax(copies, {}, [worker](const auto& row) { return row[worker]; });
        EXPECT_LE(static_cast<double>(greatest[worker] - least[worker]), most) << "of worker " << worker;
      }
    }
    waits = std::max(waits, counts.waits());
  };
  expect_survival<std::int64_t>(kinds({Vap{0.01}, Vap{3}, Cvap{1, 0.01}, Cvap{1, 3}}), any_with_few_rows, {}, near);
  EXPECT_GT(waits, 0u);
}

TEST(Losses, while_shards_move) { expect_survival(kinds(kAllLosses), moving); }
// What bulk-synchronous workers make of fractions, by a rule with a state, has the same bits wherever rows lay meanwhile.
TEST(Losses, moves_leave_no_trace) {
  using Fractions = ScriptedWorkers<double>;
  for (const std::uint64_t seed : seeds(kSeeds)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto moved = moving(Bsp{}, 3 * seed);
    Fractions::Options options;
    options.consistency = Bsp{};
    options.rule = Rule::adagrad(0.5);
    options.seed = seed;
    options.members = moved.members;
    options.workers_a_member = moved.workers_a_member;
    options.servers = moved.servers;
    options.parts = moved.parts;
    options.uneven = moved.uneven;
    std::map<std::pair<std::uint32_t, Key>, std::vector<double>> rows[2];
    for (const bool moves : {false, true}) {
      for (const auto& move : moved.moves) {
        if (moves) options.moves.push_back({move.when, move.shard, move.to});
      }
      Fractions(options).run([&](std::uint32_t worker, Clock clock, Key key, std::span<const double> row) {
        if (clock == Fractions::kOver) rows[moves][{worker, key}].assign(row.begin(), row.end());
      });
    }
    EXPECT_EQ(rows[0], rows[1]);
  }
}

// What is rounded, or is the state of a rule, is at the second holder what it was at the first: small whole numbers, which no rounding changes,
// and steps that depend on the order of their own worker's gradients alone. (Rows that travel rounded under bsp are refused here.)
TEST(Losses, of_rows_that_travel_rounded) {
  std::vector<Kind> rounded;
  for (const Encoding encoding : {Encoding::bf16, Encoding::int8}) {
    for (const Consistency& consistency : kAllLosses) {
      if (!whole_clocks(consistency) && !value_bound(consistency, 0)) rounded.push_back({consistency, encoding});
    }
  }
  for (const auto drawn : {losing, moving, departing, losing_again}) expect_survival<float>(rounded, drawn);
}
TEST(Losses, where_servers_step_by_each_batch) {
  std::vector<Kind> stepping;
  for (const Consistency& consistency : kAllLosses) {
    if (!whole_clocks(consistency) && !value_bound(consistency, 0)) stepping.push_back({consistency, Encoding::none, Rule::sgd(1)});
    if (!whole_clocks(consistency) && !leaves_at_once(consistency) && longest_stay(consistency) == 0) {
      stepping.push_back({consistency, Encoding::none, Rule::adagrad(0.5)});
    }
  }
  for (const auto drawn : {losing, moving, departing, losing_again}) expect_survival<double>(stepping, drawn);
}

// Bulk-synchronous servers step as if who was lost had gone to the barrier after its last clock that counts, to the bit, by rules whose steps depend on
// all that came before. That clock is found by trying: one of them gives the rows that all have.
TEST(Losses, where_servers_step_by_whole_clocks) {
  using Fractions = ScriptedWorkers<double>;
  using Rows = std::map<std::pair<std::uint32_t, Key>, std::vector<double>>;
  const std::vector<Rule> rules{Rule::sgd(0.1, 0.9), Rule::adagrad(0.5), Rule::adam(0.1), Rule::adaptive_revision(0.5)};
  int cut_short = 0;
  for (const std::uint64_t seed : seeds(kSeeds / 2)) {
    const Rule& rule = drawn_from(rules, seed);
    SCOPED_TRACE(name(rule) + ", seed " + std::to_string(seed));
    ScriptedOptions options = losing(Bsp{}, seed);
    options.rule = rule;
    options.workers_a_member = 1;
    options.uneven = options.remainder = false;
    options.kills.resize(1);
    const net::Rank unlucky = options.kills.front().first;
    const auto rows_of = [](Fractions& workers, net::Rank but) {
      Rows rows;
      workers.run([&](std::uint32_t worker, Clock clock, Key key, std::span<const double> row) {
        if (clock == Fractions::kOver && workers.rank_of(worker) != but) rows[{worker, key}].assign(row.begin(), row.end());
      });
      return rows;
    };
    Fractions disturbed(options);
    const Rows rows = rows_of(disturbed, unlucky);
    ScriptedOptions quiet = options;
    quiet.kills.clear();
    quiet.clocks_of.assign(disturbed.size(), options.clocks);
    bool found = false;
    std::uint32_t of_unlucky = 0;
    while (of_unlucky < disturbed.size() && disturbed.rank_of(of_unlucky) != unlucky) ++of_unlucky;
    const bool works = of_unlucky < disturbed.size();
    for (Clock cut = works ? disturbed.clock(of_unlucky) : 0; !found && cut >= 0; --cut) {
      if (works) quiet.clocks_of[of_unlucky] = cut;
      Fractions undisturbed(quiet);
      found = rows_of(undisturbed, unlucky) == rows;
      cut_short += works && found && cut > 0 && cut < options.clocks;
    }
    EXPECT_TRUE(found) << "no run without a loss has these rows";
  }
  EXPECT_GT(cut_short, 0);
}

// A server that gave up one handover and began another with the same giver took pieces of the first for the second's.
TEST(Losses, what_is_left_of_an_earlier_handover_is_not_taken) {
  expect_survival<double>({{Ssp{0}, Encoding::none, Rule::adagrad(0.5)}}, losing_again, {2423, 2651});
}

TEST(Losses, what_does_not_survive_is_refused) {
  for (const char* const kept : {"bsp", "ssp:3", "essp:3", "cap:2", "dssp:0:2", "significance:0.5:2", "vap:3", "cvap:2:3", "async"}) {
    EXPECT_NO_THROW(check_survives({.name = "a", .consistency = consistency_from(kept)})) << kept;
  }
  for (const char* const lost : {"bsp:1", "pssp:1:2", "vap-strong:3", "cvap-strong:2:3"}) {
    EXPECT_THROW(check_survives({.name = "a", .consistency = consistency_from(lost)}), Error) << lost;
  }
  EXPECT_THROW(check_survives({.name = "a", .consistency = Vap{3}, .rule = Rule::adagrad(0.5)}), Error) << "each holder steps in its own order";
}

// Workers unsubscribe rows meanwhile: whoever answers next knows of it, or is asked anew.
ScriptedOptions unsubscribing(const Consistency& consistency, std::uint64_t seed) {
  const std::vector<ScriptedOptions (*)(const Consistency&, std::uint64_t)> any{losing, losing_again, moving, departing};
  ScriptedOptions options = any[seed % any.size()](consistency, seed);
  options.intends = true;
  if (seed % 3 == 0) options.most_copies = 1000;
  return options;
}
TEST(Losses, while_rows_are_unsubscribed) { expect_survival(kinds(kAllLosses), unsubscribing); }

TEST(Losses, and_members_depart) { expect_survival(kinds(kAllLosses), departing); }
TEST(Losses, again_once_another_holds_the_rows) { expect_survival(kinds(kAllLosses), losing_again); }

}  // namespace
}  // namespace shoal::table
