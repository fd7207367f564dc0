#include "shoal/collective/known_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "shoal/collective/build.h"
#include "shoal/collective/hosts.h"
#include "shoal/collective/synthesize.h"
#include "shoal/core/error.h"
#include "shoal/topo/import.h"

namespace shoal::collective {

namespace {

constexpr const char* kRefused = "refused";  // why there is no network
constexpr Collective kMade[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter};
constexpr Collective kMadeByRoot[] = {Collective::broadcast, Collective::reduce};

// Slices of trees are in all steps at once; rings along one dimension wait for those along the one before, and so do halving and doubling.
bool is_pipelined(const std::string& name) {
  return name == kTrees || name == kHierarchical || name == "chain" || name == "double_binary_tree" || name == "binomial";
}

}  // namespace

bool is_of_network(const std::string& program) { return program == kTrees || is_form(program); }

std::vector<KnownNetwork::Task> KnownNetwork::tasks(std::uint32_t ranks) {
  std::vector<Task> all;
  for (const Collective collective : kMade) all.push_back({collective});
  for (const Collective collective : kMadeByRoot) {
    for (std::uint32_t root = 0; root < ranks && ranks <= kMostRoots; ++root) all.push_back({collective, root});
  }
  return all;
}

KnownNetwork::KnownNetwork(topo::Topology topology, Trees trees, topo::Topology form)
    : topology_(std::move(topology)), form_(std::move(form)) {
  for (auto& [task, program] : trees) made_.emplace(Key(task, kTrees), verify(std::move(program)));
  if (ranks() > 1 && ranks() <= kMostExactHosts) {
    for (Program& program : programs_of_form(form_)) {
      Key key({Collective::all_reduce}, program.name);
      made_.emplace(std::move(key), verify(std::move(program)));
    }
  }
  price();
}

void KnownNetwork::price() {
  const auto look_at = [&](const Key& key, const Program& program) {
    courses_[key] = collective::course(program, topology_);
    rates_[key] = is_pipelined(key.second) ? even_rate(program, topology_) : courses_[key].rate;
  };
  for (const auto& [key, verified] : made_) look_at(key, verified.program());
  for (const Task& task : tasks(ranks())) {
    for (const std::string& name : builder_names(task.collective)) {
      if (ranks() > kMostExactHosts) continue;  // pairs of all hosts: closed forms must do
      look_at({task, name}, build(task.collective, name, ranks(), task.root));
    }
  }
}

std::shared_ptr<const KnownNetwork> KnownNetwork::made_for(topo::Topology topology, const ProgramCache& cache) {
  if (topology.relative) {
    throw Error(Code::invalid_argument, "has rates in link units, which say nothing of seconds", "topology " + topology.name,
                "give its links rates in bytes/s, Mbit/s, ...");
  }
  Trees trees;
  for (const Task& task : tasks(static_cast<std::uint32_t>(topology.hosts.size()))) {
    trees.emplace(task, kept_or_synthesized(topology, task.collective, Synthesis::few, task.root, cache));
  }
  return std::shared_ptr<const KnownNetwork>(new KnownNetwork(topology, std::move(trees), topology));
}

std::shared_ptr<const KnownNetwork> KnownNetwork::without_trees(topo::Topology topology) {
  return std::shared_ptr<const KnownNetwork>(new KnownNetwork(topology, {}, topology));
}

std::shared_ptr<const KnownNetwork> KnownNetwork::made_and_told(const std::function<std::shared_ptr<const KnownNetwork>()>& make,
                                                                const std::function<void(const std::string&)>& tell) {
  std::shared_ptr<const KnownNetwork> made;
  try {
    made = make();
  } catch (const Error& error) {
    tell(nlohmann::ordered_json{{kRefused, error.what()}}.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    throw;
  }
  tell(made->to_json());
  return made;
}

std::shared_ptr<const KnownNetwork> KnownNetwork::around(std::span<const std::uint32_t> left) const {
  if (left.size() < 2) return nullptr;
  topo::Topology rest = topo::restricted_to(topology_, left);
  try {
    return made(Collective::all_reduce, kTrees) != nullptr ? made_for(std::move(rest)) : without_trees(std::move(rest));
  } catch (const Error& error) {  // it is in pieces: members still reach each other in ways that it does not know
    if (error.code() != Code::invalid_argument) throw;
    return nullptr;
  }
}

std::shared_ptr<const KnownNetwork> KnownNetwork::measured_anew(topo::Topology topology) const {
  if (topology.hosts.size() != topology_.hosts.size()) {
    throw Error(Code::internal, fmt::format("{} hosts were measured anew, of {}", topology.hosts.size(), topology_.hosts.size()), "the network");
  }
  if (hosts_in(topology) != hosts_in(topology_)) return nullptr;  // it is another network, which its forms do not fit
  const auto anew = std::shared_ptr<KnownNetwork>(new KnownNetwork(*this));
  anew->topology_ = std::move(topology);
  anew->price();
  return anew;
}

std::string KnownNetwork::words_around(std::span<const std::uint32_t> left) const {
  const auto rest = around(left);
  return rest ? rest->to_json() : "";
}

std::shared_ptr<const KnownNetwork> KnownNetwork::heard(const std::string& words) {
  return words.empty() ? nullptr : from_json(words, "the network of those that are left");
}

std::string KnownNetwork::to_json() const {
  nlohmann::ordered_json json{{"topology", nlohmann::ordered_json::parse(topo::to_json(topology_))}};
  if (form_ != topology_) json["form"] = nlohmann::ordered_json::parse(topo::to_json(form_));
  json["programs"] = nlohmann::ordered_json::object();  // the trees, by root where there is one; forms are made again
  for (const auto& [collective, root] : tasks(ranks())) {
    if (const Verified* const trees = made(collective, kTrees, root)) {
      auto program = nlohmann::ordered_json::parse(collective::to_json(trees->program()));
      auto& place = json["programs"][name(collective)];
      has_root(collective) ? place.push_back(std::move(program)) : static_cast<void>(place = std::move(program));
    }
  }
  return json.dump();
}

std::shared_ptr<const KnownNetwork> KnownNetwork::from_json(const std::string& text, const std::string& where) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  const auto refuse = [&](const std::string& what) -> void { throw Error(Code::invalid_argument, what, where); };
  if (json.is_object() && json.contains(kRefused) && json[kRefused].is_string()) refuse(json[kRefused].get<std::string>());
  if (json.is_discarded() || !json.is_object() || !json.contains("topology") || !json.contains("programs")) {
    refuse("no network: an object with topology and programs is expected");
  }
  topo::Topology topology = topo::topology_from_json(json["topology"].dump(), where + ": topology");
  topo::Topology form = json.contains("form") ? topo::topology_from_json(json["form"].dump(), where + ": form") : topology;
  if (form.hosts.size() != topology.hosts.size())
    refuse(fmt::format("its form has {} hosts, not {}", form.hosts.size(), topology.hosts.size()));
  Trees programs;
  const auto& all = json["programs"];
  const bool has_trees = !all.is_object() || !all.empty();
  for (const Task& task : tasks(static_cast<std::uint32_t>(topology.hosts.size()))) {
    if (!has_trees) break;
    const char* const called = name(task.collective);
    if (has_root(task.collective) && all.is_object() && !all.contains(called)) continue;  // written before there were any
    if (!all.is_object() || !all.contains(called)) refuse(fmt::format("no program for {}", called));
    if (has_root(task.collective) && (!all[called].is_array() || all[called].size() != topology.hosts.size())) {
      refuse(fmt::format("its programs for {} are not one for each root", called));
    }
    const auto& one = has_root(task.collective) ? all[called][task.root] : all[called];
    Program program = program_from_json(one.dump(), fmt::format("{}: programs.{}", where, called));
    if (program.collective != task.collective || program.root != task.root || program.ranks != topology.hosts.size()) {
      refuse(fmt::format("its program for {} is one for {} of {} ranks", called, name(program.collective), program.ranks));
    }
    programs.emplace(task, std::move(program));
  }
  return std::shared_ptr<const KnownNetwork>(new KnownNetwork(std::move(topology), std::move(programs), std::move(form)));
}

const Verified* KnownNetwork::made(Collective collective, const std::string& name, std::uint32_t root) const {
  const auto found = made_.find({{collective, root}, name});
  return found == made_.end() ? nullptr : &found->second;
}

double KnownNetwork::rate(Collective collective, const std::string& name, std::uint32_t root) const {
  const auto found = rates_.find({{collective, root}, name});
  return found == rates_.end() ? 0 : found->second;
}

Course KnownNetwork::course(Collective collective, const std::string& name, std::uint32_t root) const {
  const auto found = courses_.find({{collective, root}, name});
  return found == courses_.end() ? Course() : found->second;
}

topo::Topology topology_for(const std::string& file, std::uint32_t ranks) {
  topo::Topology topology = topo::import_topology(std::filesystem::path(file)).topology;
  if (topology.hosts.size() == ranks) return topology;
  throw Error(Code::invalid_argument, fmt::format("has {} hosts for {} members", topology.hosts.size(), ranks), file,
              "give it a host for every member, in the order of their ranks");
}

}  // namespace shoal::collective
