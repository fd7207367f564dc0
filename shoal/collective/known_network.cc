#include "shoal/collective/known_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "shoal/collective/build.h"
#include "shoal/collective/build_trees.h"
#include "shoal/collective/hosts.h"
#include "shoal/collective/synthesize.h"
#include "shoal/collective/unroll.h"
#include "shoal/collective/waits.h"
#include "shoal/core/error.h"
#include "shoal/topo/import.h"

namespace shoal::collective {

namespace {

constexpr const char* kRefused = "refused";  // why there is no network
constexpr Collective kMade[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter};

// Sends on the longest way that a slice waits for.
std::uint32_t steps(const Program& program) {
  const Unrolled all = unroll(program);
  std::vector<std::uint32_t> before(all.instances.size(), 0);  // sends that are over when it is
  std::uint32_t most = 0;
  for (const std::uint32_t i : order_of(all)) {
    const Op& op = all.op(i);
    const auto behind = [&](std::uint32_t earlier) { before[i] = earlier == kNone ? before[i] : std::max(before[i], before[earlier]); };
    for (std::size_t k = 0; k < op.after.size(); ++k) behind(all.after(i, k));
    for (std::uint32_t window = 0; window < all.place(i).windows; ++window) behind(all.writer_of(i, window));
    if (receives(op)) behind(all.instances[i].partner);
    if (op.kind == OpKind::send) ++before[i];
    most = std::max(most, before[i]);
  }
  return most;
}

}  // namespace

bool is_of_network(const std::string& program) { return program == kTrees || program == kHierarchical; }

void KnownNetwork::add(Collective collective, const char* name, Program program) {
  const Key key(collective, name);
  rates_[key] = congestion(program, topology_).rate;
  made_.emplace(key, verify(std::move(program)));
}

KnownNetwork::KnownNetwork(topo::Topology topology, std::map<Collective, Program> programs) : topology_(std::move(topology)) {
  for (auto& [collective, program] : programs) {
    steps_[collective] = steps(program);
    add(collective, kTrees, std::move(program));
  }
  if (const Hosts hosts = hosts_in(topology_); are_shared(hosts) && ranks() <= kMostExactHosts) {
    add(Collective::all_reduce, kHierarchical, hierarchical_all_reduce(hosts));
  }
  price_builders();
}

void KnownNetwork::price_builders() {
  for (const Collective collective : kMade) {
    for (const std::string& name : builder_names(collective)) {
      if (ranks() > kMostExactHosts) continue;  // pairs of all hosts: closed forms must do
      rates_[{collective, name}] = congestion(build(collective, name, ranks()), topology_).rate;
    }
  }
}

std::shared_ptr<const KnownNetwork> KnownNetwork::made_for(topo::Topology topology, const ProgramCache& cache) {
  if (topology.relative) {
    throw Error(Code::invalid_argument, "has rates in link units, which say nothing of seconds", "topology " + topology.name,
                "give its links rates in bytes/s, Mbit/s, ...");
  }
  std::map<Collective, Program> programs;
  for (const Collective collective : kMade) programs.emplace(collective, program_for(topology, collective, kTrees, 0, cache));
  return std::shared_ptr<const KnownNetwork>(new KnownNetwork(std::move(topology), std::move(programs)));
}

std::shared_ptr<const KnownNetwork> KnownNetwork::without_trees(topo::Topology topology) {
  return std::shared_ptr<const KnownNetwork>(new KnownNetwork(std::move(topology), {}));
}

std::shared_ptr<const KnownNetwork> KnownNetwork::made_and_told(const std::function<topo::Topology()>& topology,
                                                                const std::function<void(const std::string&)>& tell,
                                                                const ProgramCache& cache) {
  std::shared_ptr<const KnownNetwork> made;
  try {
    made = made_for(topology(), cache);
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
  if (hosts_in(topology) != hosts_in(topology_)) return nullptr;  // "hierarchical" would be another program, or there would be one
  const auto anew = std::shared_ptr<KnownNetwork>(new KnownNetwork(*this));
  anew->topology_ = std::move(topology);
  anew->price_builders();
  for (const auto& [key, verified] : anew->made_) anew->rates_[key] = congestion(verified.program(), anew->topology_).rate;
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
  json["programs"] = nlohmann::ordered_json::object();  // the trees; others are made again
  for (const Collective collective : kMade) {
    if (const Verified* const trees = made(collective, kTrees)) {
      json["programs"][name(collective)] = nlohmann::ordered_json::parse(collective::to_json(trees->program()));
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
  std::map<Collective, Program> programs;
  if (json["programs"].is_object() && json["programs"].empty()) return without_trees(std::move(topology));
  for (const Collective collective : kMade) {
    if (!json["programs"].is_object() || !json["programs"].contains(name(collective))) refuse(fmt::format("no program for {}", name(collective)));
    Program program = program_from_json(json["programs"][name(collective)].dump());
    if (program.collective != collective || program.ranks != topology.hosts.size()) {
      refuse(fmt::format("its program for {} is one for {} of {} ranks", name(collective), name(program.collective), program.ranks));
    }
    programs.emplace(collective, std::move(program));
  }
  return std::shared_ptr<const KnownNetwork>(new KnownNetwork(std::move(topology), std::move(programs)));
}

const Verified* KnownNetwork::made(Collective collective, const std::string& name) const {
  const auto found = made_.find({collective, name});
  return found == made_.end() ? nullptr : &found->second;
}

double KnownNetwork::rate(Collective collective, const std::string& name) const {
  const auto found = rates_.find({collective, name});
  return found == rates_.end() ? 0 : found->second;
}

std::uint32_t KnownNetwork::tree_steps(Collective collective) const {
  const auto found = steps_.find(collective);
  return found == steps_.end() ? 0 : found->second;
}

topo::Topology topology_for(const std::string& file, std::uint32_t ranks) {
  topo::Topology topology = topo::import_topology(std::filesystem::path(file)).topology;
  if (topology.hosts.size() == ranks) return topology;
  throw Error(Code::invalid_argument, fmt::format("has {} hosts for {} members", topology.hosts.size(), ranks), file,
              "give it a host for every member, in the order of their ranks");
}

}  // namespace shoal::collective
