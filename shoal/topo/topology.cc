#include "shoal/topo/topology.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "shoal/core/aside.h"
#include "shoal/core/error.h"
#include "shoal/core/fnv.h"
#include "shoal/core/read_text.h"
#include "shoal/topo/rate.h"

namespace shoal::topo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostBytes = 64 << 20, kMostNameBytes = 256;
constexpr double kMostMicros = 3.6e9;
constexpr const char* kRelative = "link units";
constexpr std::pair<std::string_view, double> kUnits[] = {  // bytes/s
    {"bytes/s", 1}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"Mbit/s", 125e3}, {"Gbit/s", 125e6}, {kRelative, 1}};

// Reads one file's values; every complaint says where it found what.
struct TopologyReader {
  const std::string& file;

  ordered_json parsed(const std::string& text) const {
    ordered_json json;
    try {
      json = ordered_json::parse(text);
    } catch (const ordered_json::parse_error& error) {
      const std::size_t byte = std::clamp<std::size_t>(error.byte, 1, text.size() + 1);
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(byte - 1), '\n');
      refuse(fmt::format("line {}", line), fmt::format("not JSON: byte {} is out of place", byte));
    } catch (const ordered_json::out_of_range&) {
      refuse("", "a number is too big");
    }
    if (!json.is_object()) refuse("", "not a JSON object");
    return json;
  }
  [[noreturn]] void refuse(const std::string& entry, const std::string& fact, const std::string& hint = {}) const {
    throw Error(Code::invalid_argument, entry.empty() ? fact : entry + ": " + fact, file, hint);
  }
  const ordered_json& list(const ordered_json& json, const std::string& key, std::size_t most) const {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_array()) refuse(key, "a list is missing");
    if (found->size() > most) refuse(key, fmt::format("{} entries, at most {} are allowed", found->size(), most));
    return *found;
  }
  std::string text(const ordered_json& json, const std::string& entry) const {
    if (!json.is_string()) refuse(entry, "must be text");
    auto value = json.get<std::string>();
    if (value.empty() || value.size() > kMostNameBytes) refuse(entry, fmt::format("must have 1 to {} bytes", kMostNameBytes));
    const auto controls = [](unsigned char c) { return c < 0x20 || c == 0x7f; };  // they would end lines of what is shown, or colour it
    if (std::ranges::any_of(value, controls)) refuse(entry, "must have no line break or other control character");
    return value;
  }
  double number(const ordered_json& json, const std::string& entry, bool zero_is_fine) const {
    const double value = json.is_number() ? json.get<double>() : -1;
    if (!(value >= 0) || !std::isfinite(value) || (value == 0 && !zero_is_fine)) refuse(entry, "must be a positive number");
    return value;
  }
  double unit(const ordered_json& json, bool& relative) const {
    std::string name = text(json.value("bandwidth_unit", ordered_json()), "bandwidth_unit");
    constexpr std::string_view kSuffix = " per direction";
    if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
    for (const auto& [known, bytes] : kUnits) {
      if (name != known) continue;
      relative = name == kRelative;
      return bytes;
    }
    refuse("bandwidth_unit", fmt::format("unknown unit \"{}\"", name), "bytes/s, MB/s, GB/s, Mbit/s, Gbit/s or link units");
  }
};

}  // namespace

Topology topology_from_json(const std::string& text, const std::string& where) {
  const TopologyReader read{where};
  if (text.size() > kMostBytes) read.refuse("", fmt::format("{} bytes, at most {} are read", text.size(), kMostBytes));
  const ordered_json json = read.parsed(text);

  Topology topology;
  if (json.contains("name")) topology.name = read.text(json["name"], "name");
  if (json.contains("description") && json["description"].is_string()) topology.description = json["description"];
  const double unit = read.unit(json, topology.relative);

  std::unordered_map<std::string, Node> node_of;
  for (const auto& [key, names] : {std::pair{"compute", &topology.hosts}, std::pair{"switches", &topology.switches}}) {
    for (const ordered_json& entry : read.list(json, key, kMostNodes - topology.nodes())) {
      const std::string place = fmt::format("{}[{}]", key, names->size());
      names->push_back(read.text(entry, place));
      if (!node_of.emplace(names->back(), static_cast<Node>(node_of.size())).second) {
        read.refuse(place, fmt::format("\"{}\" is there twice", names->back()));
      }
    }
  }
  for (const ordered_json& entry : read.list(json, "links", kMostLinks)) {
    const std::string place = fmt::format("links[{}]", topology.links.size());
    if (!entry.is_object()) read.refuse(place, "must be an object with src, dst and bw");
    const auto end = [&](const char* key) {
      const std::string name = read.text(entry.value(key, ordered_json()), place + "." + key);
      const auto found = node_of.find(name);
      if (found == node_of.end()) read.refuse(place + "." + key, fmt::format("no host or switch is called \"{}\"", name));
      return found->second;
    };
    Link link{end("src"), end("dst"), 0, Nanoseconds(0)};
    if (link.from == link.to) read.refuse(place, fmt::format("\"{}\" is linked to itself", topology.node_name(link.from)));
    link.rate = unit * read.number(entry.value("bw", ordered_json()), place + ".bw", false);
    if (!is_rate(link.rate)) read.refuse(place + ".bw", kNoSuchRate);
    if (entry.contains("alpha_us")) {
      const double micros = read.number(entry["alpha_us"], place + ".alpha_us", true);
      if (micros > kMostMicros) read.refuse(place + ".alpha_us", "more than an hour");
      link.latency = Nanoseconds(std::llround(micros * 1e3));
    }
    topology.links.push_back(link);
  }
  return topology;
}

std::string to_json(const Topology& topology) {
  ordered_json json{{"name", topology.name.empty() ? "topology" : topology.name}};
  if (!topology.description.empty()) json["description"] = topology.description;
  json["bandwidth_unit"] = topology.relative ? kRelative : "bytes/s";
  json["compute"] = topology.hosts;
  json["switches"] = topology.switches;
  json["links"] = ordered_json::array();
  for (const Link& link : topology.links) {
    ordered_json entry{{"src", topology.node_name(link.from)}, {"dst", topology.node_name(link.to)}, {"bw", link.rate}};
    if (link.latency > Nanoseconds(0)) entry["alpha_us"] = static_cast<double>(link.latency.count()) / 1e3;
    json["links"].push_back(std::move(entry));
  }
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Topology restricted_to(const Topology& topology, std::span<const Node> hosts) {
  Topology left{topology.name, topology.description, {}, topology.switches, {}, topology.relative};
  constexpr Node kGone = ~Node{0};
  std::vector<Node> now(topology.nodes(), kGone);
  for (const Node host : hosts) {
    now[host] = static_cast<Node>(left.hosts.size());
    left.hosts.push_back(topology.hosts[host]);
  }
  const auto before = topology.hosts.size(), after = left.hosts.size();
  for (std::size_t node = before; node < now.size(); ++node) now[node] = static_cast<Node>(node - before + after);
  for (const Link& link : topology.links) {
    if (now[link.from] != kGone && now[link.to] != kGone) left.links.push_back({now[link.from], now[link.to], link.rate, link.latency});
  }
  return left;
}

std::string digest(const Topology& topology) {
  Fnv1a sum;
  const auto add = [&](auto value) { sum.add_words(std::as_bytes(std::span(&value, 1))); };
  add(std::uint64_t{topology.hosts.size()});
  add(std::uint64_t{topology.switches.size()});
  std::vector<Link> links = topology.links;
  const auto key = [](const Link& link) { return std::tuple(link.from, link.to, link.rate, link.latency); };
  std::ranges::sort(links, {}, key);
  for (const Link& link : links) {
    add(std::uint64_t{link.from} << 32 | link.to);
    add(link.rate);
    add(link.latency.count());
  }
  return fmt::format("{:016x}", sum.value());
}

Topology read_topology(const std::filesystem::path& file) { return topology_from_json(read_text(file, kMostBytes), file.string()); }

void write_topology(const Topology& topology, const std::filesystem::path& file) { write_aside(file, to_json(topology)); }

}  // namespace shoal::topo
