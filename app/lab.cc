#include "app/lab.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "app/lab_state.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;

constexpr unsigned most_hosts = 64;
constexpr const char* subnet = "10.77.0.0/24";

std::string prefix_of(const std::string& name) { return "shoal-" + name + "-"; }
std::string switch_of(const std::string& name) { return prefix_of(name) + "sw"; }
std::string bridge(unsigned number) { return fmt::format("bridge{}", number); }

// The host's number: the end of its namespace's name, and of its port's on the switch.
std::string port_of(const LabHost& host) {
  return fmt::format("p{}", host.network.substr(host.network.rfind('-') + 1));
}

void check_name(const std::string& name) {
  static const std::regex good("[a-z0-9][a-z0-9-]{0,31}");
  if (std::regex_match(name, good)) return;
  throw Error(Code::invalid_argument, fmt::format("'{}' is no name for a lab", name), "--name",
              "1 to 32 small letters, digits and dashes");
}

// Runs `ip ...` or `tc ...`; a failure becomes one line with the tool's own words.
std::string tool(const std::vector<std::string>& words) {
  const ToolResult result = run_tool(words);
  if (result.status == 0) return result.out;
  std::string said = result.err.substr(0, result.err.find('\n'));
  const bool forbidden =
      said.find("not permitted") != std::string::npos || said.find("ermission denied") != std::string::npos;
  if (forbidden) {
    throw Error(Code::unsupported, "this machine does not permit network namespaces: " + said, "shoal lab",
                "run as root, in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN");
  }
  throw Error(Code::io, said.empty() ? fmt::format("exit status {}", result.status) : said,
              fmt::format("{}", fmt::join(words, " ")));
}
void ip(const std::string& network, std::vector<std::string> words) {
  words.insert(words.begin(), {"ip", "-n", network});
  tool(words);
}
void limit(const std::string& network, const std::string& device, double rate) {
  const Bucket b = bucket(rate);
  tool({"tc", "-n", network, "qdisc", "replace", "dev", device, "root", "tbf", "rate",
        fmt::format("{}bit", b.rate_bits), "burst", fmt::format("{}b", b.burst), "limit",
        fmt::format("{}b", b.queue)});
}

void limit_link(const LabHost& host, const std::string& sw) {
  limit(host.network, "c0", host.up);
  limit(sw, port_of(host), host.down);
}

// No automatic IPv6 addresses: their chatter would be counted on links whose bytes are compared with a
// formula.
void make_switches(const std::string& network, unsigned bridges) {
  tool({"ip", "netns", "add", network});
  ip(network, {"link", "set", "lo", "up"});
  for (unsigned i = 0; i < bridges; ++i) {
    ip(network, {"link", "add", bridge(i), "type", "bridge"});
    ip(network, {"link", "set", bridge(i), "addrgenmode", "none", "up"});
  }
}

void join_switches(const std::string& network, const std::vector<Trunk>& trunks) {
  for (std::size_t i = 0; i < trunks.size(); ++i) {
    const Trunk& trunk = trunks[i];
    const std::string a = fmt::format("t{}a", i), b = fmt::format("t{}b", i);
    ip(network, {"link", "add", a, "mtu", "1500", "type", "veth", "peer", "name", b, "mtu", "1500"});
    ip(network, {"link", "set", a, "addrgenmode", "none", "master", bridge(trunk.a), "up"});
    ip(network, {"link", "set", b, "addrgenmode", "none", "master", bridge(trunk.b), "up"});
    limit(network, a, trunk.there);
    limit(network, b, trunk.back);
  }
}

void make_host(const LabHost& host, const std::string& sw) {
  const std::string port = port_of(host);
  tool({"ip", "netns", "add", host.network});
  ip(host.network, {"link", "set", "lo", "up"});
  tool({"ip", "link", "add", "c0", "netns", host.network, "mtu", "1500", "type", "veth", "peer", "name", port,
        "netns", sw, "mtu", "1500"});
  ip(sw, {"link", "set", port, "addrgenmode", "none", "master", bridge(host.bridge), "up"});
  ip(host.network, {"link", "set", "c0", "addrgenmode", "none", "up"});
  ip(host.network, {"addr", "add", host.address + "/24", "dev", "c0"});
  // By route, because a namespace's default can be a congestion control that ordinary networks do not run.
  ip(host.network, {"route", "replace", subnet, "dev", "c0", "proto", "kernel", "scope", "link", "src",
                    host.address, "congctl", "cubic"});
  limit_link(host, sw);
}

std::vector<std::string> networks_of(const std::string& name) {
  const std::regex ours(prefix_of(name) + "([0-9]+|sw)");
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/run/netns", error)) {
    if (std::regex_match(entry.path().filename().string(), ours)) found.push_back(entry.path().filename());
  }
  return found;
}

std::vector<pid_t> processes_in(const std::string& network) {
  std::istringstream lines(tool({"ip", "netns", "pids", network}));
  std::vector<pid_t> pids;
  for (pid_t pid = 0; lines >> pid;) pids.push_back(pid);
  return pids;
}

// TERM, after 2 s KILL: a namespace lives as long as a process is inside.
void end_processes(const std::vector<std::string>& networks) {
  using namespace std::chrono_literals;
  const Instant start = steady_now();
  for (Nanoseconds waited{}; waited < 4s; waited = steady_now() - start) {
    bool any = false;
    for (const auto& network : networks) {
      for (pid_t pid : processes_in(network)) {
        any = true;
        ::kill(pid, waited < 2s ? SIGTERM : SIGKILL);
        ::kill(pid, SIGCONT);
      }
    }
    if (!any) return;
    std::this_thread::sleep_for(50ms);
  }
}

void remove_networks(const std::string& name) {
  const auto networks = networks_of(name);
  end_processes(networks);
  for (const auto& network : networks) tool({"ip", "netns", "delete", network});
}

double read_rate(const std::string& text, const std::string& where) {
  double rate = 0;
  try {
    rate = parse_rate(text);
  } catch (const Error& error) {
    throw Error(error.code(), error.fact(), where, error.hint());
  }
  if (rate < 1e3 || rate > 12.5e9) {
    throw Error(Code::invalid_argument, "a link of " + text + " cannot be made", where, "8kbit to 100gbit");
  }
  return rate;
}

}  // namespace

HostSpace LabHost::space() const { return {"/run/netns/" + network, name}; }

Bucket bucket(double rate) {
  const auto burst = std::max<std::uint64_t>(128 * 1024, static_cast<std::uint64_t>(rate * 0.004));
  const auto queue = std::max(burst, static_cast<std::uint64_t>(rate * 0.050));
  return {static_cast<std::uint64_t>(rate * 8), burst, queue};
}

std::vector<LabHost> uniform_hosts(unsigned members, const std::string& rate) {
  const double bytes = read_rate(rate, "--rate");
  std::vector<LabHost> hosts(members);
  for (unsigned i = 0; i < members; ++i) hosts[i] = {fmt::format("host{}", i), {}, {}, bytes, bytes};
  return hosts;
}

std::vector<LabHost> read_rates(const fs::path& file) {
  std::ifstream input(file);
  if (!input)
    throw Error(Code::invalid_argument, "cannot read: " + std::string(std::strerror(errno)), file.string());
  static const std::regex good("[a-z0-9][a-z0-9-]{0,31}");
  std::vector<LabHost> hosts;
  std::string text;
  for (unsigned number = 1; std::getline(input, text); ++number) {
    const std::string where = fmt::format("{}:{}", file.string(), number);
    std::istringstream words(text.substr(0, text.find('#')));
    std::string name, up, down, more;
    if (!(words >> name)) continue;
    if (!(words >> up) || ((words >> down) && (words >> more))) {
      throw Error(Code::invalid_argument, "a line is: host rate [rate_down]", where,
                  "for instance: host0 200mbit");
    }
    if (!std::regex_match(name, good)) {
      throw Error(Code::invalid_argument, fmt::format("'{}' is no host name", name), where,
                  "small letters, digits and dashes");
    }
    if (std::any_of(hosts.begin(), hosts.end(), [&](const LabHost& host) { return host.name == name; })) {
      throw Error(Code::invalid_argument, "host " + name + " is there twice", where);
    }
    const double rate = read_rate(up, where);
    hosts.push_back({name, {}, {}, rate, down.empty() ? rate : read_rate(down, where)});
    if (hosts.size() > most_hosts) throw Error(Code::invalid_argument, "more than 64 hosts", where);
  }
  if (hosts.empty()) throw Error(Code::invalid_argument, "names no host", file.string());
  return hosts;
}

Lab lab_up(const std::string& name, std::vector<LabHost> hosts, const std::vector<Trunk>& trunks) {
  check_name(name);
  if (hosts.empty() || hosts.size() > most_hosts) {
    throw Error(Code::invalid_argument,
                fmt::format("a lab has 1 to {} hosts, not {}", most_hosts, hosts.size()), "-n");
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    hosts[i].network = fmt::format("{}{}", prefix_of(name), i);
    hosts[i].address = fmt::format("10.77.0.{}", i + 1);
  }
  if (!networks_of(name).empty() || !claim_lab(name)) {
    throw Error(Code::invalid_argument, "lab " + name + " exists already", "--name",
                "shoal lab down " + name);
  }
  const Lab lab{name, std::move(hosts)};
  try {
    make_switches(switch_of(name), static_cast<unsigned>(trunks.size()) + 1);  // joined as a tree
    join_switches(switch_of(name), trunks);
    for (const auto& host : lab.hosts) make_host(host, switch_of(name));
    save_lab(lab);
  } catch (...) {
    try {
      lab_down(name);
    } catch (const Error&) {  // the first failure is the one to report
    }
    throw;
  }
  return lab;
}

bool lab_down(const std::string& name) {
  check_name(name);
  const bool networks = !networks_of(name).empty();
  remove_networks(name);
  return forget_lab(name) || networks;
}

const LabHost& find_host(const Lab& lab, const std::string& host) {
  for (const auto& candidate : lab.hosts) {
    if (candidate.name == host || candidate.network == prefix_of(lab.name) + host) return candidate;
  }
  std::vector<std::string> names;
  for (const auto& candidate : lab.hosts) names.push_back(candidate.name);
  throw Error(Code::invalid_argument, "lab " + lab.name + " has no host " + host, {},
              fmt::format("it has {}", fmt::join(names, ", ")));
}

void lab_cut(const Lab& lab, const LabHost& host) {
  ip(switch_of(lab.name), {"link", "set", port_of(host), "down"});
}
void lab_heal(const Lab& lab, const LabHost& host) {
  ip(switch_of(lab.name), {"link", "set", port_of(host), "up"});
}

void lab_rate(Lab lab, const LabHost& host, const std::string& up, const std::string& down) {
  LabHost& changed = *std::ranges::find(lab.hosts, host.network, &LabHost::network);
  changed.up = read_rate(up, "rate");
  changed.down = down.empty() ? changed.up : read_rate(down, "rate_down");
  limit_link(changed, switch_of(lab.name));
  save_lab(lab);
}

}  // namespace shoal::app
