#include "shoal/topo/gml.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/topo/components.h"

namespace shoal::topo {
namespace {

constexpr int kMostNested = 32;
constexpr std::size_t kMostLabelBytes = 256;  // what topology.h reads again
constexpr double kBitsPerByte = 8, kMostRaw = 1e18;

enum class GmlKind { number, text, list };
struct Value {
  GmlKind kind = GmlKind::list;
  double number = 0;
  std::string_view text;
};

// Keys and values from the front, nothing kept: a list is read by whoever meets its key.
class GmlReader {
 public:
  GmlReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  [[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) const {
    throw Error(Code::invalid_argument, what, fmt::format("{}:{}", where_, line_), hint);
  }

  // Hands every pair to `pair(key, value)` until the list ends; after a value of Kind::list, `pair` must read or skip that list.
  void list(const std::function<void(std::string_view, const Value&)>& pair) {
    if (++depth_ > kMostNested) refuse(fmt::format("lists more than {} deep", kMostNested));
    for (bool open = true; open;) {
      space();
      if (at_end()) {
        if (depth_ > 1) refuse("the file ends inside a list");
        open = false;
      } else if (text_[at_] == ']') {
        if (depth_ == 1) refuse("a list ends that never began");
        ++at_;
        open = false;
      } else {
        const std::string_view name = key();
        pair(name, value());
      }
    }
    --depth_;
  }
  void skip() {
    list([this](std::string_view, const Value& inner) {
      if (inner.kind == GmlKind::list) skip();
    });
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void space() {
    bool line_begins = at_ == 0;
    for (; !at_end(); ++at_) {
      const char c = text_[at_];
      if (c == '#' && line_begins) {
        while (!at_end() && text_[at_] != '\n') ++at_;
        if (at_end()) return;
      } else if (!is_space(c)) {
        return;
      }
      line_begins = text_[at_] == '\n';
      line_ += line_begins ? 1 : 0;
    }
  }
  std::string_view key() {
    const std::size_t begin = at_;
    while (!at_end() && (is_letter(text_[at_]) || (at_ > begin && is_digit(text_[at_])))) ++at_;
    if (at_ == begin) refuse("a key must begin with a letter");
    return text_.substr(begin, at_ - begin);
  }
  Value value() {
    space();
    if (at_end()) refuse("the file ends after a key");
    if (text_[at_] == '[') {
      ++at_;
      return {};
    }
    if (text_[at_] == '"') return quoted();
    const std::size_t begin = at_;
    while (!at_end() && !is_space(text_[at_]) && text_[at_] != ']' && text_[at_] != '[') ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    const std::string_view digits = word.starts_with('+') ? word.substr(1) : word;
    Value value{GmlKind::number, 0, word};
    const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), value.number);
    if (wrong != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value.number)) {
      refuse("a value is neither a number nor a text in quotes nor a list");
    }
    return value;
  }
  Value quoted() {
    const std::size_t begin = ++at_;
    while (!at_end() && text_[at_] != '"') line_ += text_[at_++] == '\n' ? 1 : 0;
    if (at_end()) refuse("the file ends inside a text");
    return {GmlKind::text, 0, text_.substr(begin, at_++ - begin)};
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0, line_ = 1;
  int depth_ = 0;
};

// A label as people read it: the entities that the Zoo uses resolved, control characters gone. GML is ASCII; other bytes become '?'.
std::string readable(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&lt;", '<'}, {"&gt;", '>'}};
  std::string label;
  while (!text.empty() && label.size() < kMostLabelBytes / 2) {
    std::size_t taken = 1;
    char c = text[0];
    for (const auto& [entity, meant] : kEntities) {
      if (!text.starts_with(entity)) continue;
      taken = entity.size();
      c = meant;
    }
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    if (static_cast<unsigned char>(c) >= 0x20) label += c;
    text.remove_prefix(taken);
  }
  return label;
}

struct Edge {
  double source, target;
  std::optional<double> bits;  // per second
};

class Network {
 public:
  Network(std::string_view text, const std::string& where, const ImportOptions& options)
      : reader_(text, where), where_(where), options_(options) {}

  Imported read() {
    bool seen = false;
    reader_.list([&](std::string_view key, const Value& value) {
      if (value.kind != GmlKind::list) return;
      if (key != "graph") return reader_.skip();
      if (seen) reader_.refuse("a second graph");
      seen = true;
      graph();
    });
    if (!seen) reader_.refuse("no graph [ ... ] is there");
    if (ids_.empty()) refuse("the graph has no node");
    name_hosts();
    add_links();
    const Components parts = components(made_.topology);
    if (parts.hosts.size() > 1) note("not connected: " + describe(parts, made_.topology));
    return std::move(made_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) const {
    throw Error(Code::invalid_argument, what, where_, hint);
  }
  void note(std::string line) { made_.notes.push_back(std::move(line)); }

  void graph() {
    reader_.list([this](std::string_view key, const Value& value) {
      if (key == "node" && value.kind == GmlKind::list) return node();
      if (key == "edge" && value.kind == GmlKind::list) return edge();
      if (value.kind == GmlKind::list) return reader_.skip();
      if (key == "directed") directed_ = value.number == 1;
      if (key == "label" && value.kind == GmlKind::text) made_.topology.name = readable(value.text);
    });
  }

  void node() {
    std::optional<double> id;
    std::string label;
    reader_.list([&](std::string_view key, const Value& value) {
      if (value.kind == GmlKind::list) return reader_.skip();
      if (key == "id" && value.kind == GmlKind::number) id = value.number;
      if (key == "label" && value.kind == GmlKind::text) label = readable(value.text);
    });
    if (!id) reader_.refuse("a node without an id");
    if (ids_.size() == kMostNodes) reader_.refuse(fmt::format("more than {} nodes", kMostNodes));
    if (!ids_.emplace(*id, static_cast<Node>(ids_.size())).second) reader_.refuse(fmt::format("a second node with id {}", *id));
    id_of_.push_back(*id);
    labels_.push_back(std::move(label));
  }

  void edge() {
    std::optional<double> source, target, bits;
    reader_.list([&](std::string_view key, const Value& value) {
      if (value.kind == GmlKind::list) return reader_.skip();
      if (value.kind != GmlKind::number) return;
      if (key == "source") source = value.number;
      if (key == "target") target = value.number;
      if (key == "LinkSpeedRaw") bits = value.number;
    });
    if (!source || !target) reader_.refuse("an edge without source or target");
    if (bits && (!(*bits > 0) || *bits > kMostRaw)) reader_.refuse(fmt::format("LinkSpeedRaw {} is no speed in bit/s", *bits));
    if (edges_.size() == kMostLinks / 2) reader_.refuse(fmt::format("more than {} edges", kMostLinks / 2));
    edges_.push_back({*source, *target, bits});
  }

  void name_hosts() {
    std::unordered_map<std::string, std::size_t> times;
    for (const auto& label : labels_) ++times[label];
    std::unordered_set<std::string> taken;
    std::size_t renamed = 0;
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const bool alone = !labels_[i].empty() && times[labels_[i]] == 1;
      std::string name = alone ? labels_[i] : fmt::format("{} ({})", labels_[i].empty() ? "node" : labels_[i], id_of_[i]);
      while (!taken.insert(name).second) name += "'";  // somebody is called like a label with its id
      renamed += alone ? 0 : 1;
      made_.topology.hosts.push_back(std::move(name));
    }
    if (renamed > 0) note(show_count(renamed, "nodes") + " with no label or one that others have: told apart by id");
  }

  void add_links() {
    std::size_t loops = 0, silent = 0;
    for (const Edge& edge : edges_) silent += edge.bits ? 0 : 1;
    const bool all_silent = silent == edges_.size();
    if (silent > 0 && !all_silent && options_.edge_rate == 0) {
      refuse(fmt::format("{} of {} name no speed", silent, show_count(edges_.size(), "edges")),
             "--edge-rate 1gbit gives them one");
    }
    made_.topology.relative = all_silent && options_.edge_rate == 0;
    const double assumed = made_.topology.relative ? 1 : options_.edge_rate;
    for (const Edge& edge : edges_) {
      const auto from = ids_.find(edge.source), to = ids_.find(edge.target);
      if (from == ids_.end() || to == ids_.end())
        refuse(fmt::format("an edge names node {}, which is not there", from == ids_.end() ? edge.source : edge.target));
      const double rate = edge.bits ? *edge.bits / kBitsPerByte : assumed;
      if (from == to) {
        ++loops;
      } else if (directed_) {
        made_.topology.links.push_back({from->second, to->second, rate, Nanoseconds(0)});
      } else {
        made_.topology.link_both_ways(from->second, to->second, rate);
      }
    }
    if (loops > 0) note(show_count(loops, "edges") + " from a node to itself: left out");
    if (silent == 0) return;
    note(made_.topology.relative ? "no edge names a speed: read in link units, each link 1"
                                 : fmt::format("{} of {} name no speed: taken as {}", silent,
                                               show_count(edges_.size(), "edges"), shoal::show_rate(assumed)));
  }

  GmlReader reader_;
  const std::string& where_;
  const ImportOptions& options_;
  Imported made_;
  bool directed_ = false;
  std::unordered_map<double, Node> ids_;
  std::vector<double> id_of_;
  std::vector<std::string> labels_;
  std::vector<Edge> edges_;
};

}  // namespace

Imported topology_from_gml(const std::string& text, const std::string& where, const ImportOptions& options) {
  if (text.size() > kMostImportBytes) {
    throw Error(Code::invalid_argument, fmt::format("{} bytes, at most {} are read", text.size(), kMostImportBytes), where);
  }
  return Network(text, where, options).read();
}

}  // namespace shoal::topo
