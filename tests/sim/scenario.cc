// Scenarios out of TOML: what they become, and every mistake in one line that names its key.
#include "shoal/sim/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "shoal/collective/forms.h"
#include "shoal/core/error.h"
#include "shoal/exchange/planner.h"
#include "shoal/topo/generate.h"
#include "tests/refusal.h"
#include "tests/sim/networks.h"

namespace shoal::sim {
namespace {

const std::string kStar = "shoal_sim = 1\n[topology]\nform = \"star\"\nsize = [4]\nrate = \"1gbit\"\n";
const std::string kRun = "[[run]]\nprogram = \"ring\"\nbytes = \"8MB\"\n";

std::string no_file(const std::string& file) { throw Error(Code::invalid_argument, "cannot be read", file); }
Scenario read(const std::string& text) { return scenario_from_toml(text, "s.toml", no_file); }

TEST(Scenario, is_what_its_text_says) {
  const Scenario scenario = read(kStar + R"(latency = "100us"
[costs]
model = "links_only"
message = "5us"
[[run]]
name = "first"
program = "direct"
collective = "reduce_scatter"
hosts = ["2", "0", "1"]
bytes = "6MB"
priority = 3
repeats = 2
pause = "1s"
[[run]]
program = "ring"
bytes = "8MB"
after = ["first"]
[[table]]
workers = ["0", "1"]
shards = ["3"]
clocks = 4
pulled_rows = 10
pushed_rows = 5
row_bytes = "1KB"
[[flow]]
from = "0"
to = "3"
rate = "10mbit"
)");
  EXPECT_EQ(scenario.topology.hosts.size(), 4U);
  EXPECT_EQ(scenario.topology.links[0].latency, std::chrono::microseconds(100));
  EXPECT_EQ(scenario.costs.message_seconds, 5e-6);
  EXPECT_EQ(scenario.costs.goodput, 1);
  ASSERT_EQ(scenario.jobs.size(), 2 + 1 + 8U);
  EXPECT_EQ(scenario.jobs[0].hosts, (std::vector<topo::Node>{2, 0, 1}));
  EXPECT_EQ(scenario.jobs[0].elements, 1'500'000U);
  EXPECT_EQ(scenario.jobs[0].priority, 3U);
  EXPECT_EQ(scenario.jobs[1].start, 1);
  EXPECT_EQ(scenario.jobs[1].after[0].job, 0U);
  EXPECT_EQ(scenario.jobs[2].after.size(), 2U);
  EXPECT_EQ(scenario.groups[1].name, "run 1");
  EXPECT_EQ(scenario.flows[0].rate, 1.25e6);
  const Outcome outcome = simulate(scenario.topology, scenario.jobs, scenario.flows, scenario.costs);
  EXPECT_GT(outcome.seconds, 1);
}

TEST(Scenario, faults_come_in_order_of_time) {
  const Scenario scenario = read(kStar + kRun + R"([recovery]
on_peer_lost = "shrink"
silence = "2s"
proof_ns_per_op = 500
[[fault]]
at = "3s"
link = ["3", "s"]
[[fault]]
name = "early"
at = "1s"
host = "2"
how = "stopped"
[[fault]]
at = "2s"
host = "1"
how = "slow"
factor = 3
[[fault]]
at = "4s"
link = ["s", "0"]
how = "slow"
rate = "10mbit"
)");
  ASSERT_TRUE(scenario.faults.recovery);
  EXPECT_EQ(scenario.faults.recovery->silence_seconds, 2);
  EXPECT_DOUBLE_EQ(scenario.faults.recovery->proof_seconds, 5e-7);
  const std::vector<Fault>& list = scenario.faults.list;
  EXPECT_EQ(scenario.fault_names, (std::vector<std::string>{"early", "fault 2", "fault 0", "fault 3"}));
  EXPECT_EQ(list[0].kind, Fault::Kind::stopped);
  EXPECT_EQ(list[0].host, 2U);
  EXPECT_EQ(list[1].kind, Fault::Kind::slow_host);
  EXPECT_EQ(list[1].factor, 3);
  EXPECT_EQ(list[2].kind, Fault::Kind::cut);
  EXPECT_EQ(list[2].links.size(), 2U);  // both directions
  EXPECT_EQ(list[3].rate, 1.25e6);
}

TEST(Scenario, who_may_be_lost_goes_on_by_fewer_if_nothing_else_is_said) {
  const Scenario one = read(kStar + kRun + "[[fault]]\nat = \"10ms\"\nhost = \"0\"\n");
  ASSERT_TRUE(one.faults.recovery);
  EXPECT_FALSE(one.faults.recovery->rejoin);
  EXPECT_FALSE(read(kStar + kRun + "[[fault]]\nat = \"10ms\"\nhost = \"0\"\nhow = \"slow\"\nfactor = 2\n").faults.recovery);
  const Scenario other = read(kStar + kRun + "[recovery]\non_peer_lost = \"rejoin\"\nrestart = \"1s\"\njoin = \"10ms\"\nstate = \"1MB\"\nstate_ns_per_byte = 2\n");
  EXPECT_TRUE(other.faults.recovery->rejoin);
  EXPECT_EQ(other.faults.recovery->restart_seconds, 1);
  EXPECT_EQ(other.faults.recovery->join_seconds, 0.01);
  EXPECT_EQ(other.faults.recovery->state_bytes, 1e6);
  EXPECT_DOUBLE_EQ(other.faults.recovery->state_seconds_per_byte, 2e-9);
}

// Goal: what `program build --mode` makes of a network is simulated by its name. Expected: the same program, for the part of the network that a run is on; for fewer
// members that of the hole, and trees where the form is gone.
TEST(Scenario, programs_of_a_network_have_names) {
  const std::string grid = "shoal_sim = 1\n[topology]\nform = \"grid\"\nsize = [4, 4]\nwrap = [1, 2]\nrate = \"1gbit\"\n";
  const auto run = [](const std::string& program, const std::string& more = "") {
    return "[[run]]\nprogram = \"" + program + "\"\nbytes = \"8MB\"\n" + more;
  };
  for (const char* const form : {"torus", "mesh_ring", "row_pair", "ordered_ring"}) {
    const Scenario scenario = read(grid + run(form));
    EXPECT_EQ(to_json(*scenario.jobs[0].program), to_json(collective::build_for(scenario.topology, form))) << form;
  }
  EXPECT_EQ(read(grid + run("trees", "collective = \"all_gather\"\n")).jobs[0].program->name, "trees");
  const Scenario torus = read(grid + run("torus")),
                 ring =
                     read("shoal_sim = 1\n[topology]\nform = \"grid\"\nsize = [4, 6]\nrate = \"1gbit\"\n" + run("mesh_ring"));
  std::vector<std::uint32_t> left;  // without a block of 2 x 2
  const std::vector<std::string> whole = ring.topology.hosts,
                                 holed = topo::grid({{4, 6}, {false, false}, {125e6}, {{{0, 2}, {2, 2}}}}).hosts;
  for (std::uint32_t rank = 0; rank < whole.size(); ++rank) {
    if (std::ranges::find(holed, whole[rank]) != holed.end()) left.push_back(rank);
  }
  EXPECT_EQ(left.size(), 20U);
  EXPECT_EQ(ring.jobs[0].fewer(left)->name, "mesh_ring");
  EXPECT_EQ(ring.jobs[0].fewer(left)->ranks, 20U);
  EXPECT_EQ(torus.jobs[0].fewer({0, 1, 2, 3, 4, 7, 8, 11, 12, 13, 14, 15})->name, "trees");
  const std::string corner = "hosts = [\"" + torus.topology.hosts[0] + "\", \"" + torus.topology.hosts[1] + "\", \"" +
                             torus.topology.hosts[4] + "\", \"" + torus.topology.hosts[5] + "\"]\n";
  EXPECT_EQ(read(grid + run("torus", corner)).jobs[0].program->ranks, 4U);
  EXPECT_EQ(shoal::refusal([&] { read(kStar + run("torus")); }).substr(0, 23), "s.toml: run[0].program:");
  EXPECT_EQ(shoal::refusal([&] { read(grid + run("torus", "collective = \"broadcast\"\n")); }).substr(0, 23),
            "s.toml: run[0].program:");
}

TEST(Scenario, names_files_beside_it) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "shoal_scenario";
  std::filesystem::create_directory(folder);
  topo::write_topology(star(3, 1e6), folder / "net.json");
  std::ofstream(folder / "ring.program.json") << collective::to_json(collective::ring_all_reduce(3));
  std::ofstream(folder / "s.toml") << "shoal_sim = 1\n[topology]\nfile = \"net.json\"\n[[run]]\nprogram = \"ring.program.json\"\nbytes = \"3MB\"\n";
  const Scenario scenario = read_scenario(folder / "s.toml");
  EXPECT_NEAR(simulate(scenario.topology, scenario.jobs, {}, Costs::links_only()).seconds, 4, 0.02);
  std::filesystem::remove_all(folder);
}

// Goal: a file that is no program of its claims is refused before anything is read by its numbers. Method: sound programs with one number changed so that it
// leads beyond what is there. Expected: a line that begins with the file.
TEST(Scenario, a_program_that_is_none_is_refused) {
  const auto refused = [](const collective::Program& program) {
    const std::string text = kStar + "[[run]]\nprogram = \"p.json\"\nbytes = \"1MB\"\n", json = collective::to_json(program);
    return shoal::refusal([&] { scenario_from_toml(text, "s.toml", [&](const std::string&) { return json; }); });
  };
  const std::string begin = "p.json: program ring of 4 ranks: ";
  EXPECT_EQ(refused(collective::ring_all_reduce(4)), "nothing was refused");
  EXPECT_EQ(refused(collective::ring_all_reduce(3)), "s.toml: run[0].hosts: 4 hosts for a program of 3 ranks");
  collective::Program shares = collective::ring_all_reduce(4);
  shares.shares = {1};
  EXPECT_EQ(refused(shares), begin + "1 shares of 4 chunks");
  collective::Program another = collective::ring_all_reduce(4);
  another.collective = collective::Collective::all_to_all;
  EXPECT_EQ(refused(another).substr(0, begin.size()), begin);
  EXPECT_EQ(shoal::refusal([] {
              scenario_from_toml(kStar + "[[run]]\nprogram = \"p.json\"\nbytes = \"1MB\"\n", "s.toml", [](const std::string&) { return "{\"v\": 2}"; });
            }),
            "p.json: $.v: only version 1 is known");
}

// The keys of each table in docs/simulation.md, by its name; "" for those above all tables.
std::map<std::string, std::set<std::string>> published_keys() {
  const auto quoted = [](const std::string& cell) {
    std::set<std::string> words;
    for (std::size_t at = cell.find('`'); at != std::string::npos; at = cell.find('`', at + 1)) {
      const std::size_t end = cell.find('`', at + 1);
      words.insert(cell.substr(at + 1, end - at - 1));
      at = end;
    }
    return words;
  };
  std::ifstream page(std::string(SHOAL_SOURCE) + "/docs/simulation.md");
  std::map<std::string, std::set<std::string>> keys;
  std::string line, table;
  while (std::getline(page, line) && line != "## The scenario, version 1") {
  }
  while (std::getline(page, line) && !line.starts_with("## ")) {
    std::istringstream row(line);
    std::string before, named, cell;
    if (!line.starts_with("| ") || line.starts_with("| table") || !std::getline(row, before, '|') || !std::getline(row, named, '|') || !std::getline(row, cell, '|')) continue;
    if (const auto names = quoted(named); !names.empty()) table = *names.begin();
    std::erase_if(table, [](char c) { return c == '[' || c == ']'; });
    keys[table].merge(quoted(cell));
  }
  return keys;
}

// Those that are read in this table, as the refusal of one that is not lists them.
std::set<std::string> keys_read(const std::string& before, const std::string& table) {
  const std::string net = topo::to_json(star(4, 1e6)), plan = exchange::to_json(exchange::make_plan({{"w", DType::f32, 1000, 0, 0.0}}, 4, {}));
  const std::string line = shoal::refusal([&] {
    scenario_from_toml(before + table + "no_key_at_all = 1\n", "s.toml", [&](const std::string& file) { return file == "net.json" ? net : plan; });
  });
  EXPECT_NE(line.find("no_key_at_all: is no key here ("), std::string::npos) << line;
  std::istringstream list(line.substr(line.find('(') + 1, line.size() - line.find('(') - 2));
  std::set<std::string> keys;
  for (std::string key; std::getline(list, key, ',');) keys.insert(key.substr(key.find_first_not_of(' ')));
  return keys;
}

// Goal: the schema that is published is the one that is read. Expected: for each table the same keys.
TEST(Scenario, the_published_schema_has_every_key_and_no_other) {
  const std::string top = "shoal_sim = 1\n", rate = "rate = \"1gbit\"\n", uplink = "uplink = \"1gbit\"\n", fault = "[[fault]]\nat = \"1s\"\n";
  const std::map<std::string, std::vector<std::string>> ways{
      {"topology", {"[topology]\nfile = \"net.json\"\n", "[topology]\nform = \"fat_tree\"\nsize = [2, 2]\n" + rate + uplink, "[topology]\nform = \"grid\"\nsize = [4]\n" + rate}},
      {"costs", {"[costs]\n"}},
      {"run", {kRun}},
      {"plan", {"[[plan]]\nfile = \"plan.json\"\n"}},
      {"table", {"[[table]]\nrow_bytes = \"4B\"\npulled_rows = 1\npushed_rows = 1\n"}},
      {"flow", {"[[flow]]\nfrom = \"0\"\nto = \"1\"\n"}},
      {"fault", {fault + "host = \"0\"\nhow = \"slow\"\nfactor = 2\n", fault + "link = [\"0\", \"s\"]\nhow = \"slow\"\n" + rate}},
      {"recovery", {"[recovery]\non_peer_lost = \"rejoin\"\n"}}};
  std::map<std::string, std::set<std::string>> published = published_keys();
  std::set<std::string> tables = published[""];
  for (const auto& [table, examples] : ways) {
    std::set<std::string> read;
    for (const std::string& example : examples) read.merge(keys_read(table == "topology" ? top : kStar, example));
    if (table == "run" || table == "plan" || table == "table" || table == "flow" || table == "fault") published[table].insert("name");  // every entry's
    EXPECT_EQ(published[table], read) << table;
    tables.insert(table);
  }
  EXPECT_EQ(published.size(), ways.size() + 1);
  EXPECT_EQ(tables, keys_read(top, ""));
}

std::string refusal_of_scenario(const std::string& text) {
  return shoal::refusal([&] { read(text); });
}

TEST(Scenario, every_mistake_is_named_with_its_key) {
  EXPECT_EQ(refusal_of_scenario("shoal_sim = 2"), "s.toml: shoal_sim: only version 1 is known");
  EXPECT_EQ(refusal_of_scenario(""), "s.toml: shoal_sim: is missing");
  EXPECT_EQ(refusal_of_scenario("shoal_sim = 1\nspeed = 3"), "s.toml: speed: is no key here (costs, fault, flow, name, plan, recovery, run, shoal_sim, table, topology)");
  EXPECT_EQ(refusal_of_scenario("shoal_sim = 1"), "s.toml: topology: a table [topology] is expected");
  EXPECT_EQ(refusal_of_scenario(kStar), "s.toml: nothing happens in it ([[run]], [[plan]], [[table]] or [[flow]])");
  EXPECT_EQ(refusal_of_scenario(kStar + kRun), "nothing was refused");
  EXPECT_EQ(refusal_of_scenario(kStar + kRun + "root = 1"), "s.toml: run[0].root: all_reduce has none");
  EXPECT_EQ(refusal_of_scenario(kStar + kRun + "size = 3"), "s.toml: run[0].size: is no key here (after, bytes, collective, element_bytes, hosts, name, pause, priority, program, repeats, root, start)");
  EXPECT_EQ(refusal_of_scenario(kStar + kRun + "hosts = [\"0\", \"9\"]"), "s.toml: run[0].hosts: no host is called \"9\"");
  EXPECT_EQ(refusal_of_scenario(kStar + kRun + "hosts = []"), "s.toml: run[0].hosts: is empty");
  EXPECT_EQ(refusal_of_scenario(kStar + kRun + "after = [\"x\"]"), "s.toml: run[0].after: nothing before it is called \"x\"");
  EXPECT_EQ(refusal_of_scenario(kStar + kRun + "repeats = 0"), "s.toml: run[0].repeats: must be a whole number from 1 to 10000");
  EXPECT_EQ(refusal_of_scenario(kStar + kRun + "name = \"a\"\n" + kRun + "name = \"a\""), "s.toml: run[1].name: \"a\" is there twice");
  EXPECT_EQ(refusal_of_scenario(kStar + "[[run]]\nprogram = \"ring\""), "s.toml: run[0].bytes: is missing");
  EXPECT_EQ(refusal_of_scenario(kStar + "[[run]]\nprogram = \"p.json\"\nbytes = \"1MB\""), "p.json: cannot be read");
  EXPECT_EQ(refusal_of_scenario(kStar + "[[run]]\nprogram = \"ring\"\ncollective = \"sum\"\nbytes = \"1MB\""), "s.toml: run[0].collective: there is no collective \"sum\"");
  EXPECT_EQ(refusal_of_scenario(kStar + "[run]"), "s.toml: run: tables [[run]], at most 256, are expected");
  EXPECT_EQ(refusal_of_scenario(kStar + "[[flow]]\nfrom = \"0\"\nto = \"0\""), "s.toml: flow[0].to: is the sender");
  EXPECT_EQ(refusal_of_scenario(kStar + "[costs]\ngoodput = 2"), "s.toml: costs.goodput: must be a number from 0.001 to 1");
  EXPECT_EQ(refusal_of_scenario(kStar + "[costs]\nmodel = \"exact\""), "s.toml: costs.model: \"exact\" is not known (tcp or links_only)");
  EXPECT_EQ(refusal_of_scenario("shoal_sim = 1\n[topology]\nform = \"ring\"\nsize = [3]\nrate = \"1gbit\""),
            "s.toml: topology.form: \"ring\" with 1 sizes is not known (star [hosts], fat_tree [racks, hosts], multi_site [sites, hosts], grid [width, height, ...])");
  const std::string fault = kStar + kRun + "[[fault]]\nat = \"1s\"\n";
  EXPECT_EQ(refusal_of_scenario(fault), "s.toml: fault[0]: either a host or a link is expected");
  EXPECT_EQ(refusal_of_scenario(fault + "host = \"0\"\nlink = [\"0\", \"1\"]"), "s.toml: fault[0]: either a host or a link is expected");
  EXPECT_EQ(refusal_of_scenario(fault + "host = \"7\""), "s.toml: fault[0].host: no host is called \"7\"");
  EXPECT_EQ(refusal_of_scenario(fault + "host = \"0\"\nhow = \"cut\""), "s.toml: fault[0].how: \"cut\" is not known (killed, stopped or slow)");
  EXPECT_EQ(refusal_of_scenario(fault + "link = [\"0\", \"1\"]"), "s.toml: fault[0].link: there is none (the names of the two nodes that it connects)");
  EXPECT_EQ(refusal_of_scenario(fault + "link = [\"0\", \"s\"]\nhow = \"slow\""), "s.toml: fault[0].rate: is missing");
  EXPECT_EQ(refusal_of_scenario(fault + "host = \"0\"\nhow = \"slow\""), "s.toml: fault[0].factor: is missing");
  EXPECT_EQ(refusal_of_scenario(fault + "host = \"0\"\nfactor = 2"), "s.toml: fault[0].factor: is no key here (at, host, how, link, name)");
  EXPECT_EQ(refusal_of_scenario(fault + "link = [\"0\", \"s\"]\n[recovery]\non_peer_lost = \"rejoin\""),
            "s.toml: fault[0].link: is cut, and nobody can come back over it (on_peer_lost = \"shrink\")");
  EXPECT_EQ(refusal_of_scenario(kStar + kRun + "[recovery]\non_peer_lost = \"fail\""), "s.toml: recovery.on_peer_lost: \"fail\" is not known (shrink or rejoin)");
  EXPECT_EQ(refusal_of_scenario(kStar + kRun + "[recovery]\nstate = \"1MB\""), "s.toml: recovery.state: is no key here (on_peer_lost, proof_ns_per_op, silence)");
  EXPECT_EQ(refusal_of_scenario(kStar + "[[table]]\nworkers = [\"0\"]\nshards = [\"1\"]\npulled_rows = 1\npushed_rows = 1\nrow_bytes = \"1KB\"\n[recovery]\n"),
            "s.toml: table: what tables do when members are lost is not simulated (without [recovery] and lost members)");
  EXPECT_EQ(refusal_of_scenario("shoal_sim = 1\n[topology"), "s.toml:2: Error while parsing table header: encountered end-of-file");
  EXPECT_EQ(refusal_of_scenario("shoal_sim = 1\nname = \"\xc3\xa9\""), "s.toml:2: only ASCII text is read");
  EXPECT_EQ(refusal_of_scenario(std::string(kMostScenarioBytes + 1, ' ')), "s.toml: 1048577 bytes, at most 1048576 are read");
}

// Goal: hostile text ends in one line. Method: a good scenario with bytes changed, cut out and doubled. Expected: a value or an Error.
TEST(Scenario, damaged_text_is_refused_or_read) {
  const std::string good = kStar + kRun + "[[flow]]\nfrom = \"0\"\nto = \"1\"\n";
  std::mt19937 random(8);
  int read_well = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (std::size_t i = 1 + random() % 3; i > 0; --i) {
      const std::size_t at = random() % text.size();
      if (random() % 3 == 0) text.erase(at, 1 + random() % 8);
      else if (random() % 2 == 0) text[at] = static_cast<char>(random());
      else text.insert(at, text.substr(random() % text.size(), random() % 8));
    }
    try {
      read(text);
      ++read_well;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(read_well, 0);
}

}  // namespace
}  // namespace shoal::sim
