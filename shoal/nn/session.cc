#include "shoal/nn/session.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/joint.h"
#include "shoal/collective/probe.h"
#include "shoal/collective/probe_together.h"
#include "shoal/collective/synthesize.h"
#include "shoal/net/call.h"

namespace shoal::nn {

using collective::Collective;

namespace {

// Texts are names, plans and settings: far below this; a size from another member is not believed beyond it.
constexpr std::uint64_t kTextLimit = 256u << 20;

constexpr double kUnequal = 1.5;  // the fastest over the slowest: then it is worth knowing why

struct Inside {  // of a part that is run together, whatever ends it
  explicit Inside(bool& on) : on_(on) { on_ = true; }
  ~Inside() { on_ = false; }
  bool& on_;
};

}  // namespace

Session::Session(std::unique_ptr<net::Job> job, Nanoseconds patience)
    : job_(std::move(job)), patience_(patience), channel_(new_channel()) {
  if (size() == 1) return;
  std::vector<net::Rank> everybody(size());
  std::iota(everybody.begin(), everybody.end(), 0u);
  runner_ = std::make_shared<collective::Runner>(transport(), everybody);
  if (transport().on_peer_lost() != net::OnPeerLost::shrink) return;
  const auto channel = new_channel();
  net::call(transport(), [this, everybody, channel] { survivors_ = std::make_shared<collective::Survivors>(transport(), everybody, channel); });
}

// Runners and survivors live on the loop: what is still open there ends with them.
Session::~Session() {
  if (!runner_) return;
  let_go(std::exchange(survivors_, nullptr));
  let_go(std::exchange(runner_, nullptr));
  for (auto& runner : before_) let_go(std::exchange(runner, nullptr));
}

void Session::let_go(std::shared_ptr<void> of_the_loop) {
  net::call(transport(), [kept = std::move(of_the_loop)]() mutable { kept.reset(); });
}

void Session::together(const std::string& label, const std::function<void()>& part) {
  if (!survivors_ || together_) return part();
  const auto attempted = [&](const collective::Attempt& attempt) {
    if (attempt.runner->size() < living()) {
      before_.push_back(std::exchange(runner_, attempt.runner));
      generation_ = attempt.epoch;
    }
    operation_ = attempt.operation;
    const Inside inside(together_);
    part();
  };
  collective::do_together(transport(), *survivors_, patience_, label, attempted);
}

// Of a group that has lost members the links are those that all had, or unknown.
const collective::LinkModel& Session::link_model() {
  if (link_model_ || size() == 1) return link_model_.emplace(link_model_.value_or(collective::LinkModel{}));
  together("the probe of the links", [this] {
    collective::LinkModel model;
    if (living() == size()) {
      model = collective::probe(transport(), take_operations(collective::kProbeOperations), transport().now() + patience_);
      const Said said = read_said(broadcast_text(rank() == 0 ? said_here() : "", 0, "what is said of the network"));
      model.network = find_network(said, model);
      model.tuning = said.tuning;
    }
    link_model_ = model;
  });
  return *link_model_;
}

const collective::LinkModel& Session::measure_links_again() {
  if (size() == 1 || living() != size()) return link_model();
  const auto before = link_model();  // what the network is made of stays, and what people want of it
  together("the probe of the links", [this, before] {
    if (living() != size()) return;
    auto model = collective::probe(transport(), take_operations(collective::kProbeOperations), transport().now() + patience_);
    model.network = before.network;
    model.tuning = before.tuning;
    link_model_ = model;
  });
  return *link_model_;
}

std::uint64_t Session::take_operations(std::uint64_t count) {
  if (together_) return std::exchange(operation_, operation_ + count);
  return net::operation_in(channel_, std::exchange(next_operation_, next_operation_ + count));
}

std::shared_ptr<const collective::KnownNetwork> Session::find_network(const Said& said, const collective::LinkModel& link) {
  if (said.topology == "none") return nullptr;
  if (said.topology == "auto") {
    const auto& members = job_->members();
    const bool many_hosts = std::any_of(members.begin(), members.end(), [&](const net::MemberInfo& m) { return m.host != members[0].host; });
    if (!many_hosts || size() < 3 || size() > collective::kMostExactHosts) return nullptr;
    const auto operation = take_operations(collective::kTogetherOperations);
    if (collective::inequality(transport(), link, operation, transport().now() + patience_) < kUnequal) return nullptr;
    if (rank() == 0) std::fputs("shoal: members' links are unequal: measuring the network (SHOAL_TOPOLOGY=FILE says it, none leaves it)\n", stderr);
  }
  std::optional<topo::Topology> measured;
  if (!said.is_file()) measured = collective::measure_network(*job_, take_operations(collective::measure_operations(size())));
  std::shared_ptr<const collective::KnownNetwork> made;
  if (rank() == 0) made = collective::KnownNetwork::made_for(measured ? *measured : collective::topology_for(said.topology, size()));
  const std::string told = broadcast_text(made ? made->to_json() : "", 0, "the network");
  return made ? made : collective::KnownNetwork::from_json(told, "rank 0's network");
}

collective::Started Session::start(const collective::Program& program, const collective::Layout& layout,
                                   collective::Buffers buffers, const std::string& label) {
  collective::Run run;
  run.type = DType::u8;
  run.operation = take_operations(1);
  run.label = label;
  return {*runner_, collective::verify(program), layout, buffers, run};
}

void Session::wait(collective::Started& started) {
  started.wait(transport().now() + patience_, "raise SHOAL_TIMEOUT if a member may be this slow");
}

void Session::Broadcast::wait() {
  if (auto started = std::exchange(started_, std::nullopt)) session_->wait(*started);
}

void Session::Broadcast::cancel() {
  auto started = std::exchange(started_, std::nullopt);
  if (!started) return;
  try {
    started->wait(session_->transport().now());
  } catch (const Error&) {  // that it was cut short, or what had ended it
  }
}

Session::Broadcast Session::start_broadcast(std::span<std::byte> bytes, net::Rank root, const std::string& label) {
  Broadcast broadcast;
  if (living() == 1 || bytes.empty()) return broadcast;
  const auto way = collective::choose(Collective::broadcast, living(), static_cast<double>(bytes.size()), {});
  const auto program = collective::build(Collective::broadcast, way, living(), root);
  broadcast.session_ = this;
  broadcast.started_ = start(program, collective::Layout::even(program, place(), bytes.size()), {bytes.data(), bytes.data()}, label);
  return broadcast;
}

void Session::broadcast(std::span<std::byte> bytes, net::Rank root, const std::string& label) {
  together(label, [&] { start_broadcast(bytes, root, label).wait(); });
}

std::string Session::broadcast_text(const std::string& text, net::Rank root, const std::string& label) {
  std::string all;
  together(label, [&] {
    std::uint64_t length = text.size();
    broadcast(std::as_writable_bytes(std::span(&length, 1)), root, label);
    if (length > kTextLimit) throw Error(Code::internal, "a text of " + std::to_string(length) + " bytes was announced", label);
    all = place() == root ? text : std::string(length, '\0');
    broadcast(std::as_writable_bytes(std::span(all)), root, label);
  });
  return all;
}

std::vector<std::string> Session::gather_text(const std::string& own, const std::string& label) {
  std::vector<std::string> texts;
  together(label, [&] { texts = gather_once(own, label); });
  return texts;
}

std::vector<std::string> Session::gather_once(const std::string& own, const std::string& label) {
  if (living() == 1) return {own};
  const auto members = living();
  const auto program = collective::build(Collective::all_gather, "direct", members);
  std::vector<std::uint64_t> lengths(members);
  const std::uint64_t length = own.size();
  auto sizes = start(program, collective::Layout::even(program, place(), sizeof length * members),
                     {reinterpret_cast<const std::byte*>(&length), reinterpret_cast<std::byte*>(lengths.data())}, label);
  wait(sizes);

  collective::Layout layout{lengths, std::vector<std::uint64_t>(members, 0), std::vector<std::uint64_t>(members, 0)};
  std::exclusive_scan(lengths.begin(), lengths.end(), layout.output.begin(), std::uint64_t{0});
  const auto total = layout.output.back() + lengths.back();
  if (total > kTextLimit) throw Error(Code::internal, "texts of " + std::to_string(total) + " bytes were announced", label);
  std::string all(total, '\0');
  auto whole = start(program, layout, {reinterpret_cast<const std::byte*>(own.data()), reinterpret_cast<std::byte*>(all.data())}, label);
  wait(whole);
  std::vector<std::string> texts;
  for (net::Rank p = 0; p < members; ++p) texts.push_back(all.substr(layout.output[p], lengths[p]));
  return texts;
}

}  // namespace shoal::nn
