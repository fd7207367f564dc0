// The environment: where this process stands in a run.
#include <charconv>
#include <cstdlib>

#include "shoal/core/error.h"
#include "shoal/net/environment.h"
#include "shoal/net/job.h"
#include "shoal/net/nodelist.h"

namespace shoal::net {
namespace {

std::uint64_t number(const char* name, const std::string& text, std::uint64_t limit) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > limit) {
    throw Error(Code::invalid_argument, "\"" + text + "\" is not a number from 0 to " + std::to_string(limit), name);
  }
  return value;
}

constexpr std::uint64_t kMaxSize = 65536;

// Rank and size under their names in this launcher; both or neither.
void read_rank_and_size(const char* rank_name, const char* size_name, Place& place) {
  const auto rank = variable(rank_name), size = variable(size_name);
  if (!rank || !size) {
    const char* missing = rank ? size_name : rank_name;
    throw Error(Code::invalid_argument, std::string("not set, but ") + (rank ? rank_name : size_name) + " is", missing,
                "a launcher sets both; unset both to run alone");
  }
  place.size = static_cast<Rank>(number(size_name, *size, kMaxSize));
  place.rank = static_cast<Rank>(number(rank_name, *rank, kMaxSize));
  if (place.size == 0) throw Error(Code::invalid_argument, "a job has at least one member", size_name);
  if (place.rank >= place.size) {
    throw Error(Code::invalid_argument, "rank " + *rank + " is not below the size " + *size, rank_name);
  }
}

std::uint64_t number_or(const char* name, std::uint64_t otherwise, std::uint64_t limit) {
  const auto text = variable(name);
  return text ? number(name, *text, limit) : otherwise;
}

// The coordinator that rank 0 will hold, where the launcher has no board.
void need_coordinator(Place& place, const char* hint) {
  place.coordinator = variable("SHOAL_COORD").value_or("");
  if (place.size > 1 && place.coordinator.empty()) {
    throw Error(Code::invalid_argument, "not set, but this job has " + std::to_string(place.size) + " members", "SHOAL_COORD", hint);
  }
}

using Found = std::optional<Place>;

Found by_shoal() {
  const bool indexed = variable("JOB_COMPLETION_INDEX") && !variable("SHOAL_RANK");
  if (indexed || !(variable("SHOAL_RANK") || variable("SHOAL_SIZE"))) return {};
  Place place;
  place.launcher = Place::Launcher::shoal;
  read_rank_and_size("SHOAL_RANK", "SHOAL_SIZE", place);
  place.generation = number_or("SHOAL_GENERATION", 0, UINT32_MAX);
  place.job = variable("SHOAL_JOB").value_or("shoal");
  need_coordinator(place, "set it to the coordinator's host:port, or start with `shoal run`");
  return place;
}

Found by_torchrun() {
  if (!variable("RANK") && !variable("WORLD_SIZE")) return {};
  const bool another = variable("PMIX_RANK") || variable("SLURM_STEP_NODELIST") || variable("OMPI_COMM_WORLD_RANK") ||
                       variable("JOB_COMPLETION_INDEX");
  if (another && !variable("TORCHELASTIC_RUN_ID")) return {};
  Place place;
  place.launcher = Place::Launcher::torchrun;
  read_rank_and_size("RANK", "WORLD_SIZE", place);
  place.generation = number_or("TORCHELASTIC_RESTART_COUNT", 0, UINT32_MAX);
  place.job = variable("TORCHELASTIC_RUN_ID").value_or("torchrun");
  return place;
}

Found by_pmix() {
  if (!variable("PMIX_RANK")) return {};
  Place place;
  place.launcher = Place::Launcher::pmix;
  for (const char* size : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMIX_SIZE"}) {
    if (!variable(size)) continue;
    read_rank_and_size("PMIX_RANK", size, place);
    place.generation = number_or("SLURM_RESTART_COUNT", 0, UINT32_MAX);
    place.job = variable("PMIX_NAMESPACE").value_or("pmix");
    return place;
  }
  throw Error(Code::unsupported, "set by a launcher that does not say how many processes it has started", "PMIX_RANK",
              "set PMIX_SIZE to that");
}

// Two steps on one host must not take one port; both ends know the step.
std::uint16_t port_of_step(const std::string& step) {
  if (const auto reserved = variable("SLURM_STEP_RESV_PORTS")) {
    return static_cast<std::uint16_t>(number("SLURM_STEP_RESV_PORTS", reserved->substr(0, reserved->find_first_of("-,")), UINT16_MAX));
  }
  PortRange range{20000, 29999};  // below those that the kernel gives out
  if (const auto chosen = variable("SHOAL_PORT_RANGE")) range = parse_port_range(*chosen, "SHOAL_PORT_RANGE");
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : step) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return static_cast<std::uint16_t>(range.first + hash % (range.last - range.first + 1u));
}

// A step of srun. In a batch script, outside of any srun, the step's list of nodes is missing: one process, alone.
Found by_slurm() {
  const auto nodes = variable("SLURM_STEP_NODELIST");
  if (!nodes || !variable("SLURM_PROCID") || !variable("SLURM_STEP_NUM_TASKS")) return {};
  Place place;
  place.launcher = Place::Launcher::slurm;
  read_rank_and_size("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", place);
  place.generation = number_or("SLURM_RESTART_COUNT", 0, UINT32_MAX);
  place.job = "slurm." + variable("SLURM_JOB_ID").value_or("") + "." + variable("SLURM_STEP_ID").value_or("");
  const std::vector<std::string> hosts = expand_nodelist(*nodes);
  place.hosts = static_cast<unsigned>(hosts.size());
  const std::string first = place.hosts == 1 ? "127.0.0.1" : hosts.front();
  place.coordinator = variable("SHOAL_COORD").value_or(first + ":" + std::to_string(port_of_step(place.job)));
  return place;
}

Found by_openmpi() {
  if (!variable("OMPI_COMM_WORLD_RANK")) return {};
  Place place;
  place.launcher = Place::Launcher::openmpi;
  read_rank_and_size("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", place);
  place.job = variable("OMPI_MCA_ess_base_jobid").value_or("openmpi");
  need_coordinator(place, "this mpirun has no PMIx: set it to HOST:PORT, HOST being where rank 0 runs");
  return place;
}

// An index without SHOAL_SIZE is that of a pod that works alone.
Found by_kubernetes() {
  if (!variable("JOB_COMPLETION_INDEX") || !variable("SHOAL_SIZE")) return {};
  Place place;
  place.launcher = Place::Launcher::kubernetes;
  read_rank_and_size("JOB_COMPLETION_INDEX", "SHOAL_SIZE", place);
  place.job = variable("SHOAL_JOB").value_or("kubernetes");
  need_coordinator(place, "set it to JOB-0.SERVICE:PORT, the stable name of the pod with index 0 (deploy/kubernetes)");
  return place;
}

bool serves_from(const std::string& role) {
  if (role == "server" || role == "worker") return role == "server";
  throw Error(Code::invalid_argument, "\"" + role + "\" is neither worker nor server", "SHOAL_ROLE");
}

Packing packing_from(const std::string& text) {
  if (text == "auto") return Packing::automatic;
  if (text == "always") return Packing::always;
  if (text == "never") return Packing::never;
  throw Error(Code::invalid_argument, "\"" + text + "\" is none of auto, always and never", "SHOAL_PACKING");
}

}  // namespace

const char* name(Place::Launcher launcher) {
  switch (launcher) {
    case Place::Launcher::shoal: return "shoal";
    case Place::Launcher::torchrun: return "torchrun";
    case Place::Launcher::pmix: return "pmix";
    case Place::Launcher::slurm: return "slurm";
    case Place::Launcher::openmpi: return "openmpi";
    case Place::Launcher::kubernetes: return "kubernetes";
    case Place::Launcher::alone: break;
  }
  return "alone";
}

Place find_place() {
  for (const auto look : {by_shoal, by_torchrun, by_pmix, by_slurm, by_openmpi, by_kubernetes}) {
    if (const Found place = look()) return *place;
  }
  Place place;
  place.job = "alone";
  return place;
}

JoinOptions with_environment(JoinOptions options) {
  if (options.patience == Nanoseconds::zero()) {
    const std::uint64_t seconds = number_or("SHOAL_JOIN_TIMEOUT", 60, 1'000'000);
    if (seconds == 0) throw Error(Code::invalid_argument, "0 seconds are too short for anybody to join", "SHOAL_JOIN_TIMEOUT");
    options.patience = std::chrono::seconds(seconds);
  }
  if (options.interface.empty()) options.interface = variable("SHOAL_INTERFACE").value_or("");
  const auto ports = variable("SHOAL_PORT_RANGE");
  if (options.ports.first == 0 && ports) options.ports = parse_port_range(*ports, "SHOAL_PORT_RANGE");
  if (!options.on_peer_lost) {
    options.on_peer_lost = on_peer_lost_from(variable("SHOAL_ON_PEER_LOST").value_or("fail"), "SHOAL_ON_PEER_LOST");
  }
  if (!options.serves) options.serves = serves_from(variable("SHOAL_ROLE").value_or("worker"));
  if (!options.shared_memory) options.shared_memory = number_or("SHOAL_SHARED_MEMORY", 1, 1) == 1;
  if (!options.packing) options.packing = packing_from(variable("SHOAL_PACKING").value_or("auto"));
  return options;
}

OnPeerLost on_peer_lost_from(const std::string& text, const std::string& where) {
  if (text == "fail") return OnPeerLost::fail;
  if (text == "shrink") return OnPeerLost::shrink;
  if (text == "rejoin") return OnPeerLost::rejoin;
  if (text == "regrow") return OnPeerLost::regrow;
  throw Error(Code::invalid_argument, "\"" + text + "\" is none of fail, shrink, rejoin and regrow", where);
}

const char* name(OnPeerLost policy) {
  switch (policy) {
    case OnPeerLost::fail: return "fail";
    case OnPeerLost::shrink: return "shrink";
    case OnPeerLost::rejoin: return "rejoin";
    case OnPeerLost::regrow: return "regrow";
  }
  return "?";
}

PortRange parse_port_range(const std::string& text, const std::string& where) {
  PortRange range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  const bool dash = first.ec == std::errc{} && first.ptr != end && *first.ptr == '-';
  const auto last = dash ? std::from_chars(first.ptr + 1, end, range.last) : first;
  if (!dash || last.ec != std::errc{} || last.ptr != end || range.first == 0 || range.last < range.first) {
    throw Error(Code::invalid_argument, "\"" + text + "\" is not a range of ports", where, "for example 20000-20100");
  }
  return range;
}

}  // namespace shoal::net
