// Programs as JSON. Fields that are 0, false or empty are left out; a site is "input", "output" or the number of a scratch
// window; `after` is [lane, op, shift]:
//
//   {"v": 1, "name": "ring", "collective": "all_reduce", "order": "rotated", "ranks": 2, "chunks": 2,
//    "lanes": [[[{"ops": [{"kind": "send", "peer": 1, "chunk": 1, "sources": ["input"]}]}], ...], ...]}
//
// A program made for a topology has "shares", a number for each chunk, a "certificate", and where these are so "by_switches", true or false for each
// chunk, and "slice_bytes".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "shoal/collective/program.h"
#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxText = 64U << 20;
constexpr std::uint32_t kMaxLanes = 1U << 16, kMaxChunks = 1U << 24, kMaxTimes = 1U << 20;
constexpr std::size_t kMaxItems = 1U << 21;  // ops, sources and waits together
constexpr std::size_t kMaxName = 64;
constexpr std::uint32_t kLeastSlice = 64, kMaxSlice = 1U << 26;

constexpr AddOrder kOrders[] = {AddOrder::none, AddOrder::left_fold, AddOrder::rotated, AddOrder::tree};
constexpr OpKind kKinds[] = {OpKind::send, OpKind::receive, OpKind::receive_reduce, OpKind::fold, OpKind::copy};

// --- writing

Json site_json(const Site& site) {
  if (site.buffer == Buffer::scratch) return site.slot;
  return name(site.buffer);
}

Json op_json(const Op& op) {
  Json json{{"kind", name(op.kind)}};
  if (op.kind != OpKind::fold && op.kind != OpKind::copy) json["peer"] = op.peer;
  if (op.peer_step != 0) json["peer_step"] = op.peer_step;
  if (op.peer_lane != 0) json["peer_lane"] = op.peer_lane;
  json["chunk"] = op.chunk;
  if (op.chunk_step != 0) json["chunk_step"] = op.chunk_step;
  for (const Site& site : op.sources) json["sources"].push_back(site_json(site));
  if (op.kind != OpKind::send) json["target"] = site_json(op.target);
  if (op.completes) json["completes"] = true;
  for (const After& after : op.after) json["after"].push_back({after.lane, after.op, after.shift});
  return json;
}

Json lane_json(const Lane& lane) {
  Json json = Json::array();
  for (const Loop& loop : lane) {
    Json body = Json::object();
    if (loop.times != 1) body["times"] = loop.times;
    body["ops"] = Json::array();
    for (const Op& op : loop.ops) body["ops"].push_back(op_json(op));
    json.push_back(std::move(body));
  }
  return json;
}

// --- reading

// One value and the way to it, put into words only when something is wrong with it.
class Node {
 public:
  Node(const Json& json, const std::string& root) : json_(&json), root_(&root) {}

  [[noreturn]] void refuse(const std::string& what) const { throw Error(Code::invalid_argument, what, path()); }

  Node field(const char* key) const {
    if (!json_->contains(key)) refuse(fmt::format("no field \"{}\"", key));
    return Node((*json_)[key], this, key, 0);
  }
  bool has(const char* key) const { return json_->contains(key); }

  void only(std::initializer_list<const char*> keys) const {
    if (!json_->is_object()) refuse("an object is expected");
    for (const auto& [key, value] : json_->items()) {
      const auto known = [&, &k = key](const char* candidate) { return k == candidate; };
      if (std::none_of(keys.begin(), keys.end(), known)) refuse(fmt::format("unknown field \"{}\"", printable(key)));
    }
  }

  template <typename Each>
  void each(std::size_t limit, Each visit) const {
    if (!json_->is_array()) refuse("an array is expected");
    if (json_->size() > limit) refuse(fmt::format("{} elements; at most {} are allowed", json_->size(), limit));
    for (std::size_t i = 0; i < json_->size(); ++i) visit(Node((*json_)[i], this, nullptr, i));
  }

  void version(std::int64_t known) const {
    if (!json_->is_number_integer() || *json_ != known) refuse(fmt::format("only version {} is known", known));
  }

  std::int64_t number(std::int64_t least, std::int64_t most) const {
    const bool fits = json_->is_number_integer() && (!json_->is_number_unsigned() || json_->get<std::uint64_t>() <= INT64_MAX);
    const std::int64_t value = fits ? json_->get<std::int64_t>() : 0;
    if (!fits || value < least || value > most) refuse(fmt::format("a whole number from {} to {} is expected", least, most));
    return value;
  }
  std::uint32_t count(std::uint32_t most, std::uint32_t least = 0) const { return static_cast<std::uint32_t>(number(least, most)); }
  std::int32_t step() const { return static_cast<std::int32_t>(number(-std::int64_t{kMaxChunks}, kMaxChunks)); }

  double amount() const {
    const double value = json_->is_number() ? json_->get<double>() : -1;
    if (!(value >= 0) || !std::isfinite(value)) refuse("a number, 0 or more, is expected");
    return value;
  }
  double positive() const {
    const double value = amount();
    if (value == 0) refuse("a number above 0 is expected");
    return value;
  }

  bool truth() const {
    if (!json_->is_boolean()) refuse("true or false is expected");
    return json_->get<bool>();
  }

  bool is_text() const { return json_->is_string(); }
  std::string text() const {
    if (!is_text()) refuse("a text is expected");
    const std::string value = json_->get<std::string>();
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; };
    if (value.empty() || value.size() > kMaxName || !std::all_of(value.begin(), value.end(), plain)) {
      refuse(fmt::format("1 to {} characters of a-z, 0-9, _ and - are expected", kMaxName));
    }
    return value;
  }

  // The value whose name() stands here.
  template <typename Value, std::size_t N>
  Value one_of(const Value (&values)[N]) const {
    const std::string wanted = text();
    std::string all;
    for (const Value& value : values) {
      if (wanted == name(value)) return value;
      all += fmt::format("{}{}", all.empty() ? "" : ", ", name(value));
    }
    refuse(fmt::format("\"{}\" is none of {}", wanted, all));
  }

 private:
  Node(const Json& json, const Node* parent, const char* key, std::size_t index)
      : json_(&json), parent_(parent), key_(key), index_(index) {}

  std::string path() const {
    if (parent_ == nullptr) return *root_;
    return parent_->path() + (key_ != nullptr ? fmt::format(".{}", key_) : fmt::format("[{}]", index_));
  }
  static std::string printable(const std::string& text) {
    std::string shown = text.substr(0, kMaxName);
    for (char& c : shown) c = c >= ' ' && c <= '~' ? c : '?';
    return shown;
  }

  const Json* json_;
  const Node* parent_ = nullptr;  // a Node lives only while its parent's call does
  const std::string* root_ = nullptr;  // what the outermost is called, which alone has it
  const char* key_ = nullptr;
  std::size_t index_ = 0;
};

class Reader {
 public:
  Program program(const Node& root) {
    root.only({"v", "name", "collective", "order", "ranks", "chunks", "root", "slots", "servers", "shares", "by_switches", "slice_bytes", "certificate", "lanes"});
    root.field("v").version(1);
    Program program;
    program.name = root.field("name").text();
    program.collective = root.field("collective").one_of(kCollectives);
    program.order = root.field("order").one_of(kOrders);
    program.ranks = root.field("ranks").count(kMaxRanks, 1);
    program.chunks = root.field("chunks").count(kMaxChunks, 1);
    if (root.has("root")) program.root = root.field("root").count(program.ranks - 1);
    if (root.has("servers")) program.servers = root.field("servers").count(program.ranks - 1);
    if (root.has("slots")) program.slots = root.field("slots").count(kMaxLanes);
    if (root.has("shares")) {
      root.field("shares").each(kMaxItems, [&](const Node& share) { program.shares.push_back(share.count(UINT32_MAX)); });
    }
    if (root.has("by_switches")) {
      root.field("by_switches").each(kMaxItems, [&](const Node& chunk) { program.by_switches.push_back(chunk.truth()); });
    }
    if (root.has("slice_bytes")) program.slice_bytes = root.field("slice_bytes").count(kMaxSlice, kLeastSlice);
    if (root.has("certificate")) program.certificate = certificate(root.field("certificate"));
    root.field("lanes").each(program.ranks, [&](const Node& rank) {
      auto& lanes = program.lanes.emplace_back();
      rank.each(kMaxLanes, [&](const Node& json) { lane(json, lanes.emplace_back()); });
    });
    if (program.lanes.size() != program.ranks) {
      root.field("lanes").refuse(fmt::format("{} elements; one for each of {} ranks is expected", program.lanes.size(), program.ranks));
    }
    return program;
  }

 private:
  static Certificate certificate(const Node& json) {
    json.only({"topology", "rate", "bound", "prices"});
    Certificate certificate{json.field("topology").text(), json.field("rate").positive(), json.field("bound").positive(), {}};
    json.field("prices").each(kMaxItems, [&](const Node& price) { certificate.prices.push_back(price.amount()); });
    return certificate;
  }

  void lane(const Node& json, Lane& lane) {
    json.each(kMaxItems, [&](const Node& body) {
      take(body);
      body.only({"times", "ops"});
      Loop& loop = lane.emplace_back();
      if (body.has("times")) loop.times = body.field("times").count(kMaxTimes, 1);
      body.field("ops").each(kMaxItems, [&](const Node& op) { loop.ops.push_back(this->op(op)); });
    });
  }

  Op op(const Node& json) {
    take(json);
    json.only({"kind", "peer", "peer_step", "peer_lane", "chunk", "chunk_step", "sources", "target", "completes", "after"});
    Op op;
    op.kind = json.field("kind").one_of(kKinds);
    if (op.kind != OpKind::fold && op.kind != OpKind::copy) op.peer = json.field("peer").count(kMaxRanks - 1);
    if (json.has("peer_step")) op.peer_step = json.field("peer_step").step();
    if (json.has("peer_lane")) op.peer_lane = json.field("peer_lane").count(kMaxLanes - 1);
    op.chunk = json.field("chunk").count(kMaxChunks - 1);
    if (json.has("chunk_step")) op.chunk_step = json.field("chunk_step").step();
    if (json.has("sources")) {
      json.field("sources").each(kMaxRanks, [&](const Node& site) {
        take(site);
        op.sources.push_back(this->site(site));
      });
    }
    if (op.kind != OpKind::send) op.target = site(json.field("target"));
    if (json.has("completes")) op.completes = json.field("completes").truth();
    if (json.has("after")) {
      json.field("after").each(kMaxItems, [&](const Node& wait) {
        take(wait);
        op.after.push_back(this->wait(wait));
      });
    }
    return op;
  }

  Site site(const Node& json) const {
    if (!json.is_text()) return {Buffer::scratch, json.count(kMaxLanes - 1)};
    constexpr Buffer kNamed[] = {Buffer::input, Buffer::output};
    return {json.one_of(kNamed), 0};
  }

  After wait(const Node& json) const {
    std::vector<std::int64_t> numbers;
    json.each(3, [&](const Node& number) { numbers.push_back(number.number(-std::int64_t{kMaxTimes}, kMaxItems)); });
    if (numbers.size() != 3 || numbers[0] < 0 || numbers[1] < 0) json.refuse("[lane, op, shift] is expected");
    return {static_cast<std::uint32_t>(numbers[0]), static_cast<std::uint32_t>(numbers[1]), static_cast<std::int32_t>(numbers[2])};
  }

  void take(const Node& at) {
    if (++items_ > kMaxItems) at.refuse(fmt::format("more than {} loops, ops, sources and waits", kMaxItems));
  }

  std::size_t items_ = 0;
};

}  // namespace

std::string to_json(const Program& program) {
  Json json{{"v", 1},
            {"name", program.name},
            {"collective", name(program.collective)},
            {"order", name(program.order)},
            {"ranks", program.ranks},
            {"chunks", program.chunks}};
  if (program.root != 0) json["root"] = program.root;
  if (program.slots != 0) json["slots"] = program.slots;
  if (program.servers != 0) json["servers"] = program.servers;
  if (!program.shares.empty()) json["shares"] = program.shares;
  if (!program.by_switches.empty()) json["by_switches"] = program.by_switches;
  if (program.slice_bytes != 0) json["slice_bytes"] = program.slice_bytes;
  if (program.certificate) {
    const Certificate& claim = *program.certificate;
    json["certificate"] = {{"topology", claim.topology}, {"rate", claim.rate}, {"bound", claim.bound}, {"prices", claim.prices}};
  }
  json["lanes"] = Json::array();
  for (const auto& lanes : program.lanes) {
    Json rank = Json::array();
    for (const Lane& lane : lanes) rank.push_back(lane_json(lane));
    json["lanes"].push_back(std::move(rank));
  }
  return json.dump();
}

Program program_from_json(const std::string& text, const std::string& where) {
  const std::string root = where.empty() ? "$" : where + ": $";
  if (text.size() > kMaxText) {
    throw Error(Code::invalid_argument, fmt::format("a program of {} bytes; at most {} are read", text.size(), kMaxText), where);
  }
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(Code::invalid_argument, fmt::format("not JSON: byte {} is out of place", error.byte), root);
  } catch (const Json::out_of_range&) {
    throw Error(Code::invalid_argument, "a number is too big", root);
  }
  return Reader().program(Node(json, root));
}

}  // namespace shoal::collective
