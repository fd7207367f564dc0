#include "shoal/topo/nccl_xml.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <pugixml.hpp>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::topo {
namespace {

constexpr double kGigabyte = 1e9, kMegabitBytes = 125e3;
constexpr int kMostBridges = 32;
constexpr double kOnBoard = 5000 * kGigabyte;  // NCCL's LOC_BW

double nvlink_rate(int sm) {
  if (sm >= 100) return 40.1 * kGigabyte;
  if (sm >= 90) return 20.6 * kGigabyte;
  if (sm == 86) return 12 * kGigabyte;
  if (sm >= 70) return 20 * kGigabyte;
  return sm >= 60 ? 18 * kGigabyte : 20 * kGigabyte;  // no GPU in the file, no sm: as Volta
}

double lane_rate(std::string_view speed) {
  static constexpr std::pair<std::string_view, double> kGenerations[] = {{"2.5", 15}, {"5", 30},   {"8", 60},
                                                                         {"16", 120}, {"32", 240}, {"64", 480}};
  std::string_view digits = speed.substr(0, speed.find(' '));
  if (digits.ends_with(".0")) digits.remove_suffix(2);
  for (const auto& [generation, hundred_megabits] : kGenerations) {
    if (digits == generation) return hundred_megabits * 100 * kMegabitBytes;
  }
  return 60 * 100 * kMegabitBytes;
}

enum class PartKind { gpu, forwards };
struct Part {
  std::string name;
  PartKind kind;
};
struct Wire {
  std::size_t from, to;
  double rate;
  Nanoseconds latency{0};
};
struct NvLink {
  std::size_t gpu;
  std::string target, tclass;
  double rate;
};

class Machine {
 public:
  explicit Machine(const std::string& where) : where_(where) {}

  Imported read(const std::string& text) {
    if (text.size() > kMostImportBytes) refuse(fmt::format("{} bytes, at most {} are read", text.size(), kMostImportBytes));
    pugi::xml_document document;
    const pugi::xml_parse_result parsed =
        document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
    if (!parsed) refuse(fmt::format("is no XML at byte {}: {}", parsed.offset, parsed.description()));
    const pugi::xml_node system = document.child("system");
    if (!system) {
      if (document.child("graphs"))
        refuse("is what NCCL found (graphs), not what it found it in (system)", "NCCL_TOPO_DUMP_FILE writes that");
      refuse("has no <system>");
    }
    if (const std::string_view version = words(system, "version"); !version.empty() && version != "1") {
      refuse(fmt::format("<system> at byte {}: version {} is not known, only 1 is", system.offset_debug(), version.substr(0, 20)));
    }
    for (const pugi::xml_node cpu : system.children("cpu")) add_cpu(cpu);
    if (cpus_.empty()) refuse("<system> has no <cpu>");
    connect_cpus();
    connect_nvlinks();
    return assembled();
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) const {
    throw Error(Code::invalid_argument, what, where_, hint);
  }

  // Attributes; absent or empty is `otherwise`.
  static std::string_view words(const pugi::xml_node& node, const char* key) { return node.attribute(key).value(); }
  double number(const pugi::xml_node& node, const char* key, double otherwise, double most) const {
    const std::string_view text = words(node, key);
    if (text.empty()) return otherwise;
    double value = -1;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (wrong != std::errc() || end != text.data() + text.size() || !(value >= 0) || value > most) {
      refuse(fmt::format("<{}> at byte {}: {} must be a number from 0 to {}", node.name(), node.offset_debug(), key, most));
    }
    return value;
  }

  std::size_t add_part(std::string name, PartKind kind, const pugi::xml_node& node) {
    if (name.size() > 200)
      refuse(fmt::format("<{}> at byte {} has a name of {} bytes", node.name(), node.offset_debug(), name.size()));
    for (char& c : name) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
    }
    if (parts_.size() == kMostNodes) refuse(fmt::format("more than {} devices", kMostNodes));
    if (!part_of_.emplace(name, parts_.size()).second)
      refuse(fmt::format("<{}> at byte {}: a second \"{}\"", node.name(), node.offset_debug(), name));
    parts_.push_back({std::move(name), kind});
    return parts_.size() - 1;
  }
  void connect(std::size_t a, std::size_t b, double rate, Nanoseconds latency = Nanoseconds(0)) {
    add_wire({a, b, rate, latency});
    add_wire({b, a, rate, latency});
  }
  void add_wire(const Wire& wire) {
    if (wires_.size() == kMostLinks) refuse(fmt::format("more than {} links", kMostLinks));
    wires_.push_back(wire);
  }

  void add_cpu(const pugi::xml_node& cpu) {
    const std::string_view numa = words(cpu, "numaid");
    cpus_.push_back(add_part("cpu" + (numa.empty() ? std::to_string(cpus_.size()) : std::string(numa)), PartKind::forwards, cpu));
    cpu_rates_.push_back(between_cpus(cpu));
    for (const pugi::xml_node child : cpu.children()) {
      if (std::strcmp(child.name(), "pci") == 0) add_pci(child, cpus_.back(), 0);
      if (std::strcmp(child.name(), "nic") == 0) {
        const std::size_t nic =
            add_part(fmt::format("nic {}.{}", parts_[cpus_.back()].name, parts_.size()), PartKind::forwards, child);
        connect(nic, cpus_.back(), kOnBoard);
        add_nets(child, nic);
      }
    }
  }
  double between_cpus(const pugi::xml_node& cpu) const {
    const std::string_view arch = words(cpu, "arch"), vendor = words(cpu, "vendor");
    if (arch == "arm64") return 6 * kGigabyte;
    if (arch == "ppc64") return 32 * kGigabyte;
    if (vendor == "AuthenticAMD") return 16 * kGigabyte;
    if (vendor != "GenuineIntel" || number(cpu, "familyid", 6, 1e6) != 6) return 6 * kGigabyte;
    const double model = number(cpu, "modelid", 0, 1e6);
    return (model >= 0xcf ? 40 : model >= 0x8f ? 22 : model >= 0x55 ? 10 : 6) * kGigabyte;
  }

  void add_pci(const pugi::xml_node& pci, std::size_t parent, int depth) {
    if (depth == kMostBridges) refuse(fmt::format("<pci> more than {} deep", kMostBridges));
    const std::string bus(words(pci, "busid"));
    if (bus.empty()) refuse(fmt::format("<pci> at byte {} has no busid", pci.offset_debug()));
    const std::string_view kind = words(pci, "class");
    const pugi::xml_node gpu = pci.child("gpu");
    const double width = number(pci, "link_width", 0, 1024);
    const double rate = (width == 0 ? 16 : width) * lane_rate(words(pci, "link_speed"));

    std::size_t part = 0;
    if (gpu || kind.starts_with("0x03")) {
      const std::string_view device = gpu ? words(gpu, "dev") : std::string_view();
      part = add_part(device.empty() ? "gpu " + bus : "gpu" + std::string(device), PartKind::gpu, pci);
      add_nvlinks(gpu, part);
    } else if (kind.starts_with("0x02") || pci.child("nic")) {
      part = add_part("nic " + bus, PartKind::forwards, pci);
      for (const pugi::xml_node nic : pci.children("nic")) add_nets(nic, part);
    } else {
      part = add_part("pci " + bus, PartKind::forwards, pci);
    }
    if (!part_at_.emplace(bus, part).second)
      refuse(fmt::format("<pci> at byte {}: a second device at {}", pci.offset_debug(), bus));
    connect(part, parent, rate);
    for (const pugi::xml_node child : pci.children("pci")) add_pci(child, part, depth + 1);
  }

  void add_nets(const pugi::xml_node& nic, std::size_t part) {
    for (const pugi::xml_node net : nic.children("net")) {
      const double megabits = number(net, "speed", 10000, 1e9), micros = number(net, "latency", 0, 1e9);
      const std::string_view name = words(net, "name");
      const std::size_t outside =
          add_part(name.empty() ? fmt::format("net {}", parts_.size()) : "net " + std::string(name), PartKind::forwards, net);
      connect(part, outside, (megabits > 0 ? megabits : 10000) * kMegabitBytes, Nanoseconds(std::llround(micros * 1e3)));
    }
  }
  void add_nvlinks(const pugi::xml_node& gpu, std::size_t part) {
    const double each = nvlink_rate(static_cast<int>(number(gpu, "sm", 70, 1e4)));
    for (const pugi::xml_node link : gpu.children("nvlink")) {
      const double count = number(link, "count", 1, 1024);
      if (count == 0) continue;
      nvlinks_.push_back({part, std::string(words(link, "target")), std::string(words(link, "tclass")), count * each});
    }
  }

  void connect_cpus() {
    for (std::size_t a = 0; a < cpus_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) connect(cpus_[b], cpus_[a], std::min(cpu_rates_[a], cpu_rates_[b]));
    }
  }
  // A GPU lists its own direction of a link with another GPU, and both of one with a CPU or the NVSwitch (topo.cc, ncclTopoAddNvLinks).
  void connect_nvlinks() {
    std::optional<std::size_t> nvswitch;
    std::size_t own = 0, lost = 0;
    for (const NvLink& link : nvlinks_) {
      if (link.tclass.starts_with("0x068000") && !nvswitch) nvswitch = add_part("nvswitch", PartKind::forwards, {});
      if (link.tclass.starts_with("0x068000")) {
        connect(link.gpu, *nvswitch, link.rate);
        continue;
      }
      const auto found = part_at_.find(link.target);
      if (found == part_at_.end()) {
        ++lost;
      } else if (found->second == link.gpu) {
        ++own;
      } else if (parts_[found->second].kind == PartKind::gpu) {
        add_wire({link.gpu, found->second, link.rate});
      } else {
        connect(link.gpu, found->second, link.rate);
      }
    }
    if (own > 0) notes_.push_back(show_count(own, "NVLinks") + " from a GPU to itself: left out");
    if (lost > 0) notes_.push_back(show_count(lost, "NVLinks") + " to a device that the file does not have: left out");
  }

  Imported assembled() {
    Imported made;
    made.notes = std::move(notes_);
    made.topology.name = "nccl";
    std::vector<Node> node(parts_.size());
    for (const PartKind kind : {PartKind::gpu, PartKind::forwards}) {
      for (std::size_t part = 0; part < parts_.size(); ++part) {
        if (parts_[part].kind != kind) continue;
        node[part] = static_cast<Node>(made.topology.nodes());
        (kind == PartKind::gpu ? made.topology.hosts : made.topology.switches).push_back(parts_[part].name);
      }
    }
    if (made.topology.hosts.empty()) refuse("no GPU is there");
    for (const Wire& wire : wires_) made.topology.links.push_back({node[wire.from], node[wire.to], wire.rate, wire.latency});
    made.topology.description = fmt::format("{} on {} as NCCL sees them", show_count(made.topology.hosts.size(), "GPUs"),
                                            show_count(cpus_.size(), "CPUs"));
    return made;
  }

  const std::string& where_;
  std::vector<Part> parts_;
  std::vector<Wire> wires_;
  std::vector<NvLink> nvlinks_;
  std::vector<std::size_t> cpus_;
  std::vector<double> cpu_rates_;  // bytes/s to another CPU of the kind
  std::vector<std::string> notes_;
  std::unordered_map<std::string, std::size_t> part_of_, part_at_;  // by name; by PCI address
};

}  // namespace

Imported topology_from_nccl_xml(const std::string& text, const std::string& where) { return Machine(where).read(text); }

}  // namespace shoal::topo
