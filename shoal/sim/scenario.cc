#include "shoal/sim/scenario.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "shoal/collective/known_network.h"
#include "shoal/collective/verify.h"
#include "shoal/core/read_text.h"
#include "shoal/exchange/plan.h"
#include "shoal/sim/named_program.h"
#include "shoal/sim/plan_traffic.h"
#include "shoal/sim/scenario_reader.h"
#include "shoal/sim/table_traffic.h"
#include "shoal/topo/generate.h"

namespace shoal::sim {
namespace {

constexpr std::uint32_t kMostRepeats = 10'000, kMostPriority = 1U << 30;

class Reader {
 public:
  Reader(const toml::table& table, const std::string& file, const std::function<std::string(const std::string&)>& contents)
      : table_(table), file_(file), contents_(contents) {}

  Scenario read() {
    Keys keys(table_, "", file_);
    keys.version("shoal_sim", 1);
    scenario_.name = keys.text("name", "scenario");
    for (const char* key : {"topology", "costs", "recovery", "run", "plan", "table", "flow", "fault"}) keys.has(key);
    keys.finish();
    read_topology(one("topology"));
    if (table_.contains("costs")) read_costs(one("costs"));
    each("run", [this](Keys entry) { read_run(entry); });
    each("plan", [this](Keys entry) { read_plan(entry); });
    each("table", [this](Keys entry) { read_table(entry); });
    each("flow", [this](Keys entry) { read_flow(entry); });
    if (table_.contains("recovery")) read_recovery(one("recovery"));
    each("fault", [this](Keys entry) { read_fault(entry); });
    put_faults_in_order();
    if (scenario_.faults.recovery && table_.contains("table")) keys.refuse("table", "what tables do when members are lost is not simulated", "without [recovery] and lost members");
    if (scenario_.jobs.empty() && scenario_.flows.empty()) keys.refuse("", "nothing happens in it", "[[run]], [[plan]], [[table]] or [[flow]]");
    return std::move(scenario_);
  }

 private:
  Keys one(const char* key) const {
    const toml::table* const table = table_.get_as<toml::table>(key);
    if (table == nullptr) throw Error(Code::invalid_argument, fmt::format("{}: a table [{}] is expected", key, key), file_);
    return {*table, key, file_};
  }
  template <class Visit>
  void each(const char* key, const Visit& visit) const {
    if (!table_.contains(key)) return;
    const toml::array* const entries = table_.get_as<toml::array>(key);
    if (entries == nullptr || entries->size() > kMostEntries) {
      throw Error(Code::invalid_argument, fmt::format("{}: tables [[{}]], at most {}, are expected", key, key, kMostEntries), file_);
    }
    for (std::size_t i = 0; i < entries->size(); ++i) {
      const toml::table* const entry = entries->get(i)->as_table();
      if (entry == nullptr) throw Error(Code::invalid_argument, fmt::format("{}: tables [[{}]] are expected", key, key), file_);
      visit(Keys(*entry, fmt::format("{}[{}]", key, i), file_));
    }
  }

  void read_topology(Keys keys) {
    if (keys.has("file")) {
      const std::string file = keys.text("file");
      scenario_.topology = topo::topology_from_json(contents_(file), file);
    } else {
      scenario_.topology = generated(keys);
    }
    keys.finish();
    for (topo::Node host = 0; host < scenario_.topology.hosts.size(); ++host) host_of_.emplace(scenario_.topology.hosts[host], host);
  }

  topo::Topology generated(Keys& keys) const {
    const std::string form = keys.text("form");
    const std::vector<std::uint32_t> size = keys.counts("size", 8);
    const auto latency = [&](const char* key) { return Nanoseconds(std::llround(keys.seconds(key, "0s") * 1e9)); };
    const topo::Wire wire{keys.rate("rate"), latency("latency")};
    if (form == "star" && size.size() == 1) {
      if (size[0] > topo::kMostNodes) keys.refuse("size", fmt::format("{} hosts, at most {} are allowed", size[0], topo::kMostNodes));
      return topo::star(std::vector<topo::Wire>(size[0], wire));
    }
    if ((form == "fat_tree" || form == "multi_site") && size.size() == 2) {
      const topo::Wire uplink{keys.rate("uplink"), latency("uplink_latency")};
      return form == "fat_tree" ? topo::fat_tree(size[0], size[1], wire, uplink) : topo::multi_site(size[0], size[1], wire, uplink);
    }
    if (form == "grid" && !size.empty()) {
      topo::Grid grid{size, std::vector<bool>(size.size(), false), wire, {}};
      for (const std::uint32_t dimension : keys.has("wrap") ? keys.counts("wrap", 8) : std::vector<std::uint32_t>{}) {
        if (dimension < 1 || dimension > size.size()) keys.refuse("wrap", fmt::format("there is no dimension {} of {}", dimension, size.size()));
        grid.wraps[dimension - 1] = true;
      }
      return topo::grid(grid);
    }
    keys.refuse("form", fmt::format("\"{}\" with {} sizes is not known", form, size.size()),
                "star [hosts], fat_tree [racks, hosts], multi_site [sites, hosts], grid [width, height, ...]");
  }

  void read_costs(Keys keys) {
    const std::string model = keys.text("model", "tcp");
    if (model != "tcp" && model != "links_only") keys.refuse("model", fmt::format("\"{}\" is not known", model), "tcp or links_only");
    Costs& costs = scenario_.costs;
    if (model == "links_only") costs = Costs::links_only();
    if (keys.has("message")) costs.message_seconds = keys.seconds("message");
    if (keys.has("add_rate")) costs.add_rate = keys.rate("add_rate");
    costs.host_seconds_per_byte = 1e-9 * keys.number("host_ns_per_byte", 0, 1e6, costs.host_seconds_per_byte * 1e9);
    costs.goodput = keys.number("goodput", 1e-3, 1, costs.goodput);
    if (keys.has("slice")) {
      const double bytes = keys.bytes("slice");
      if (bytes < 1 || bytes > 1 << 30) keys.refuse("slice", "must be 1 byte to 1 GiB");
      costs.slice_bytes = static_cast<std::uint32_t>(bytes);
    }
    keys.finish();
  }

  std::vector<topo::Node> hosts(Keys& keys, const char* key) const {
    std::vector<topo::Node> found;
    if (!keys.has(key)) {
      found.resize(scenario_.topology.hosts.size());
      std::iota(found.begin(), found.end(), topo::Node{0});
      return found;
    }
    for (const std::string& name : keys.texts(key, topo::kMostNodes)) found.push_back(host(keys, key, name));
    if (found.empty()) keys.refuse(key, "is empty");
    return found;
  }
  topo::Node host(const Keys& keys, const char* key, const std::string& name) const {
    const auto at = host_of_.find(name);
    if (at == host_of_.end()) keys.refuse(key, fmt::format("no host is called \"{}\"", name));
    return at->second;
  }
  std::vector<Awaited> awaited(Keys& keys) const {
    std::vector<Awaited> jobs;
    if (!keys.has("after")) return jobs;
    for (const std::string& name : keys.texts("after", kMostEntries)) {
      const auto group = std::ranges::find(scenario_.groups, name, &Scenario::Group::name);
      if (group == scenario_.groups.end()) keys.refuse("after", fmt::format("nothing before it is called \"{}\"", name));
      for (std::uint32_t i = 0; i < group->jobs; ++i) jobs.push_back({group->first + i});
    }
    return jobs;
  }
  void add_group(const Keys& keys, const std::string& name, std::uint32_t first, double bytes, std::uint32_t repeats) {
    if (std::ranges::find(scenario_.groups, name, &Scenario::Group::name) != scenario_.groups.end()) keys.refuse("name", fmt::format("\"{}\" is there twice", name));
    const auto jobs = static_cast<std::uint32_t>(scenario_.jobs.size()) - first;
    if (scenario_.jobs.size() > kMostScenarioJobs) keys.refuse("", fmt::format("more than {} jobs", kMostScenarioJobs));
    scenario_.groups.push_back({name, first, jobs, bytes, repeats});
  }

  // What runs is proved first, and so is what is simulated.
  std::shared_ptr<const collective::Program> proved(const std::string& file) const {
    collective::Program program = collective::program_from_json(contents_(file), file);
    try {
      verify(program);
    } catch (const Error& error) {
      throw Error(error.code(), error.what(), file);
    }
    return std::make_shared<const collective::Program>(std::move(program));
  }

  const NamedProgram& program(Keys& keys, const std::vector<topo::Node>& hosts) {
    const auto ranks = static_cast<std::uint32_t>(hosts.size());
    const std::string name = keys.text("program");
    const bool from_file = name.ends_with(".json");
    const std::string kind = from_file ? "" : keys.text("collective", "all_reduce");
    const auto collective = collective::collective_called(kind);
    if (collective && !has_root(*collective) && keys.has("root")) keys.refuse("root", fmt::format("{} has none", collective::name(*collective)));
    const std::uint32_t root = from_file ? 0 : keys.count("root", 0, collective::kMaxRanks, 0);
    const bool is_of_hosts = collective::is_of_network(name);
    NamedProgram& known = programs_[{name, kind, is_of_hosts ? hosts : std::vector<topo::Node>(), ranks, root}];
    if (known.program) return known;
    if (from_file) {
      known.program = proved(name);
      if (known.program->ranks != ranks) keys.refuse("hosts", fmt::format("{} hosts for a program of {} ranks", ranks, known.program->ranks));
      return known;
    }
    if (!collective || kind != collective::name(*collective)) keys.refuse("collective", fmt::format("there is no collective \"{}\"", kind));
    try {
      known = is_of_hosts ? program_of_network(*collective, name, scenario_.topology, hosts, root)
                                              : named_program(*collective, name, ranks, root);
    } catch (const Error& error) {
      keys.refuse("program", error.fact(), error.hint());
    }
    return known;
  }

  void read_run(Keys keys) {
    Job job;
    job.hosts = hosts(keys, "hosts");
    if (job.hosts.size() > collective::kMaxRanks) keys.refuse("hosts", fmt::format("{} hosts, at most {} are allowed", job.hosts.size(), collective::kMaxRanks));
    const NamedProgram& named = program(keys, job.hosts);
    job.program = named.program;
    job.fewer = named.fewer;
    job.name = keys.text("name", fmt::format("run {}", scenario_.groups.size()));
    const double bytes = keys.bytes("bytes");
    job.element_bytes = keys.count("element_bytes", 1, 16, 4);
    if (bytes > 1e15) keys.refuse("bytes", "more than 1 PB");
    job.elements = static_cast<std::uint64_t>(bytes / job.element_bytes);
    job.start = keys.seconds("start", "0s");
    job.priority = keys.count("priority", 0, kMostPriority, 0);
    job.after = awaited(keys);
    const std::uint32_t repeats = keys.count("repeats", 1, kMostRepeats, 1);
    const double pause = keys.seconds("pause", "0s");
    keys.finish();
    const auto first = static_cast<std::uint32_t>(scenario_.jobs.size());
    for (std::uint32_t i = 0; i < repeats; ++i) {
      scenario_.jobs.push_back(job);
      job.after = {{first + i}};
      job.start = pause;
    }
    add_group(keys, job.name, first, bytes, repeats);
  }

  void read_plan(Keys keys) {
    PlanTraffic traffic;
    const std::string file = keys.text("file");
    traffic.plan = exchange::plan_from_json(contents_(file), file);
    traffic.name = keys.text("name", fmt::format("plan {}", scenario_.groups.size()));
    traffic.hosts = hosts(keys, "hosts");
    traffic.iterations = keys.count("iterations", 1, kMostRepeats, 1);
    traffic.start = keys.seconds("start", "0s");
    keys.finish();
    if (traffic.iterations * traffic.plan.units.size() > kMostScenarioJobs) keys.refuse("iterations", fmt::format("more than {} jobs", kMostScenarioJobs));
    double bytes = 0;
    for (const exchange::Unit& unit : traffic.plan.units) bytes += static_cast<double>(traffic.plan.bytes_of(unit));
    const auto first = static_cast<std::uint32_t>(scenario_.jobs.size());
    add_jobs(traffic, scenario_.jobs);
    add_group(keys, traffic.name, first, bytes, traffic.iterations);
  }

  void read_table(Keys keys) {
    TableTraffic traffic;
    traffic.name = keys.text("name", fmt::format("table {}", scenario_.groups.size()));
    traffic.workers = hosts(keys, "workers");
    traffic.shards = hosts(keys, "shards");
    if (traffic.workers.size() * traffic.shards.size() > 1 << 16) keys.refuse("workers", "more than 65,536 pairs of a worker and a shard");
    traffic.clocks = keys.count("clocks", 1, kMostRepeats, 1);
    traffic.staleness = keys.count("staleness", 0, kMostRepeats, 0);
    const double row = keys.bytes("row_bytes");
    const auto rows = [&](const char* key) {
      const double bytes = row * keys.count(key, 0, 1U << 31);
      if (bytes * static_cast<double>(traffic.workers.size()) > 1e15) keys.refuse(key, "more than 1 PB a clock");
      return static_cast<std::uint64_t>(bytes);
    };
    traffic.pulled = rows("pulled_rows");
    traffic.pushed = rows("pushed_rows");
    traffic.compute = keys.seconds("compute", "0s");
    traffic.start = keys.seconds("start", "0s");
    traffic.priority = keys.count("priority", 0, kMostPriority, 0);
    keys.finish();
    const auto first = static_cast<std::uint32_t>(scenario_.jobs.size());
    add_jobs(traffic, scenario_.jobs);
    const double bytes = static_cast<double>((traffic.pulled + traffic.pushed) * traffic.workers.size());
    add_group(keys, traffic.name, first, bytes, traffic.clocks);
  }

  void read_flow(Keys keys) {
    Transfer flow;
    flow.from = host(keys, "from", keys.text("from"));
    flow.to = host(keys, "to", keys.text("to"));
    if (flow.from == flow.to) keys.refuse("to", "is the sender");
    flow.bytes = keys.has("bytes") ? keys.bytes("bytes") : std::numeric_limits<double>::infinity();
    if (flow.bytes <= 0) keys.refuse("bytes", "must be more than 0");
    if (keys.has("rate")) flow.rate = keys.rate("rate");
    flow.start = keys.seconds("start", "0s");
    flow.priority = keys.count("priority", 0, kMostPriority, 0);
    scenario_.flow_names.push_back(keys.text("name", fmt::format("flow {}", scenario_.flows.size())));
    keys.finish();
    scenario_.flows.push_back(flow);
  }

  void read_recovery(Keys keys) {
    Recovery& recovery = scenario_.faults.recovery.emplace();
    const std::string policy = keys.text("on_peer_lost", "shrink");
    recovery.rejoin = policy == "rejoin";
    if (!recovery.rejoin && policy != "shrink") keys.refuse("on_peer_lost", fmt::format("\"{}\" is not known", policy), "shrink or rejoin");
    if (keys.has("silence")) recovery.silence_seconds = keys.seconds("silence");
    recovery.proof_seconds = 1e-9 * keys.number("proof_ns_per_op", 0, 1e9, recovery.proof_seconds * 1e9);
    if (recovery.rejoin) {
      if (keys.has("restart")) recovery.restart_seconds = keys.seconds("restart");
      if (keys.has("join")) recovery.join_seconds = keys.seconds("join");
      recovery.state_bytes = keys.bytes("state", "0B");
      if (recovery.state_bytes > 1e15) keys.refuse("state", "more than 1 PB");
      recovery.state_seconds_per_byte = 1e-9 * keys.number("state_ns_per_byte", 0, 1e6, recovery.state_seconds_per_byte * 1e9);
    }
    keys.finish();
  }

  void read_fault(Keys keys) {
    Fault fault;
    fault.at = keys.seconds("at");
    const bool of_link = keys.has("link");
    if (of_link == keys.has("host")) keys.refuse("", "either a host or a link is expected");
    using Kinds = std::map<std::string, Fault::Kind>;
    const Kinds kinds = of_link ? Kinds{{"cut", Fault::Kind::cut}, {"slow", Fault::Kind::slow_link}}
                                : Kinds{{"killed", Fault::Kind::killed}, {"stopped", Fault::Kind::stopped}, {"slow", Fault::Kind::slow_host}};
    const std::string how = keys.text("how", of_link ? "cut" : "killed");
    const auto kind = kinds.find(how);
    if (kind == kinds.end()) keys.refuse("how", fmt::format("\"{}\" is not known", how), of_link ? "cut or slow" : "killed, stopped or slow");
    fault.kind = kind->second;
    if (of_link) {
      fault.links = links_between(keys);
    } else {
      fault.host = host(keys, "host", keys.text("host"));
    }
    if (fault.kind == Fault::Kind::slow_link) fault.rate = keys.rate("rate");
    if (fault.kind == Fault::Kind::slow_link && fault.rate <= 0) keys.refuse("rate", "must be more than 0");
    if (fault.kind == Fault::Kind::slow_host) fault.factor = keys.count("factor", 1, 1'000'000);
    scenario_.fault_names.push_back(keys.text("name", fmt::format("fault {}", scenario_.faults.list.size())));
    keys.finish();
    auto& recovery = scenario_.faults.recovery;
    if (loses(fault) && !recovery) recovery.emplace();
    if (fault.kind == Fault::Kind::cut && recovery->rejoin) keys.refuse("link", "is cut, and nobody can come back over it", "on_peer_lost = \"shrink\"");
    scenario_.faults.list.push_back(std::move(fault));
  }
  // Both directions of all links between two nodes.
  std::vector<std::uint32_t> links_between(Keys& keys) const {
    const topo::Topology& topology = scenario_.topology;
    const std::vector<std::string> ends = keys.texts("link", 2);
    std::vector<std::uint32_t> links;
    for (std::uint32_t link = 0; ends.size() == 2 && link < topology.links.size(); ++link) {
      const std::string from = topology.node_name(topology.links[link].from), to = topology.node_name(topology.links[link].to);
      if ((from == ends[0] && to == ends[1]) || (from == ends[1] && to == ends[0])) links.push_back(link);
    }
    if (links.empty()) keys.refuse("link", "there is none", "the names of the two nodes that it connects");
    return links;
  }
  void put_faults_in_order() {
    std::vector<std::size_t> order(scenario_.faults.list.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [this](std::size_t i) { return scenario_.faults.list[i].at; });
    const auto list = std::exchange(scenario_.faults.list, {});
    const auto names = std::exchange(scenario_.fault_names, {});
    for (const std::size_t i : order) {
      scenario_.faults.list.push_back(list[i]);
      scenario_.fault_names.push_back(names[i]);
    }
  }

  const toml::table& table_;
  const std::string& file_;
  const std::function<std::string(const std::string&)>& contents_;
  Scenario scenario_;
  std::unordered_map<std::string, topo::Node> host_of_;
  // By name, collective, hosts (where it is made for those), how many they are, and root.
  std::map<std::tuple<std::string, std::string, std::vector<topo::Node>, std::uint32_t, std::uint32_t>, NamedProgram> programs_;
};

}  // namespace

Scenario scenario_from_toml(const std::string& text, const std::string& where, const std::function<std::string(const std::string& file)>& contents) {
  if (text.size() > kMostScenarioBytes) {
    throw Error(Code::invalid_argument, fmt::format("{} bytes, at most {} are read", text.size(), kMostScenarioBytes), where);
  }
  // Its tables of Unicode, too, take for granted what damaged text is not.
  const auto is_plain = [](char byte) { return (byte >= ' ' && byte <= '~') || byte == '\n' || byte == '\r' || byte == '\t'; };
  if (const auto found = std::ranges::find_if_not(text, is_plain); found != text.end()) {
    throw Error(Code::invalid_argument, "only ASCII text is read", fmt::format("{}:{}", where, 1 + std::count(text.begin(), found, '\n')));
  }
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw Error(Code::invalid_argument, std::string(error.description()), fmt::format("{}:{}", where, error.source().begin.line));
  }
  return Reader(table, where, contents).read();
}

Scenario read_scenario(const std::filesystem::path& file) {
  return scenario_from_toml(read_text(file), file.string(), [&](const std::string& named) { return read_text(file.parent_path() / named); });
}

}  // namespace shoal::sim
