#include "shoal/nn/session.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/probe.h"
#include "shoal/collective/probe_together.h"
#include "shoal/collective/synthesize.h"
#include "shoal/net/call.h"
#include "shoal/net/environment.h"

namespace shoal::nn {

using collective::Collective;

namespace {

// Texts are names, plans and settings: far below this; a size from another member is not believed beyond it.
constexpr std::uint64_t kTextLimit = 256u << 20;

constexpr double kUnequal = 1.5;  // the fastest over the slowest: then it is worth knowing why

}  // namespace

Session::Session(std::unique_ptr<net::Job> job, Nanoseconds patience)
    : job_(std::move(job)), patience_(patience), channel_(new_channel()) {
  if (size() == 1) return;
  std::vector<net::Rank> everybody(size());
  std::iota(everybody.begin(), everybody.end(), 0u);
  runner_ = std::make_shared<collective::Runner>(transport(), everybody);
}

// A runner lives on the loop: what is still open there ends with it.
Session::~Session() {
  if (!runner_) return;
  net::call(transport(), [runner = std::exchange(runner_, nullptr)]() mutable { runner.reset(); });
}

const collective::LinkModel& Session::link_model() {
  if (!link_model_) {
    const auto operation = take_operations(collective::kProbeOperations);
    auto model = size() > 1 ? collective::probe(transport(), operation, transport().now() + patience_) : collective::LinkModel{};
    if (size() > 1) model.network = find_network(model);
    link_model_ = model;
  }
  return *link_model_;
}

const collective::LinkModel& Session::measure_links_again() {
  const auto network = link_model().network;  // what it is made of stays
  link_model_ = collective::probe(transport(), take_operations(collective::kProbeOperations), transport().now() + patience_);
  link_model_->network = network;
  return *link_model_;
}

std::uint64_t Session::take_operations(std::uint64_t count) {
  return net::operation_in(channel_, std::exchange(next_operation_, next_operation_ + count));
}

std::shared_ptr<const collective::KnownNetwork> Session::find_network(const collective::LinkModel& link) {
  std::string asked;
  if (rank() == 0) asked = net::variable("SHOAL_TOPOLOGY").value_or("auto");
  asked = broadcast_text(asked, 0, "which network this is");
  if (asked == "none") return nullptr;
  if (asked == "auto") {
    const auto& members = job_->members();
    const bool many_hosts = std::any_of(members.begin(), members.end(), [&](const net::MemberInfo& m) { return m.host != members[0].host; });
    if (!many_hosts || size() < 3 || size() > collective::kMostExactHosts) return nullptr;
    const auto operation = take_operations(collective::kTogetherOperations);
    if (collective::inequality(transport(), link, operation, transport().now() + patience_) < kUnequal) return nullptr;
    if (rank() == 0) std::fputs("shoal: members' links are unequal: measuring the network (SHOAL_TOPOLOGY=FILE says it, none leaves it)\n", stderr);
  }
  std::optional<topo::Topology> measured;
  if (asked == "auto" || asked == "measure") measured = collective::measure_network(*job_, take_operations(collective::measure_operations(size())));
  std::string made;
  if (rank() == 0) made = collective::KnownNetwork::made_for(measured ? *measured : collective::topology_for(asked, size()))->to_json();
  return collective::KnownNetwork::from_json(broadcast_text(made, 0, "the network"), "rank 0's network");
}

collective::Started Session::start(const collective::Program& program, const collective::Layout& layout,
                                   collective::Buffers buffers, const std::string& label) {
  collective::Run run;
  run.type = DType::u8;
  run.operation = net::operation_in(channel_, next_operation_++);
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
  if (size() == 1 || bytes.empty()) return broadcast;
  const auto way = collective::choose(Collective::broadcast, size(), static_cast<double>(bytes.size()), {});
  const auto program = collective::build(Collective::broadcast, way, size(), root);
  broadcast.session_ = this;
  broadcast.started_ = start(program, collective::Layout::even(program, rank(), bytes.size()), {bytes.data(), bytes.data()}, label);
  return broadcast;
}

void Session::broadcast(std::span<std::byte> bytes, net::Rank root, const std::string& label) {
  start_broadcast(bytes, root, label).wait();
}

std::string Session::broadcast_text(const std::string& text, net::Rank root, const std::string& label) {
  std::uint64_t length = text.size();
  broadcast(std::as_writable_bytes(std::span(&length, 1)), root, label);
  if (length > kTextLimit) throw Error(Code::internal, "a text of " + std::to_string(length) + " bytes was announced", label);
  std::string all = rank() == root ? text : std::string(length, '\0');
  broadcast(std::as_writable_bytes(std::span(all)), root, label);
  return all;
}

std::vector<std::string> Session::gather_text(const std::string& own, const std::string& label) {
  if (size() == 1) return {own};
  const auto program = collective::build(Collective::all_gather, "direct", size());
  std::vector<std::uint64_t> lengths(size());
  const std::uint64_t length = own.size();
  auto sizes = start(program, collective::Layout::even(program, rank(), sizeof length * size()),
                     {reinterpret_cast<const std::byte*>(&length), reinterpret_cast<std::byte*>(lengths.data())}, label);
  wait(sizes);

  collective::Layout layout{lengths, std::vector<std::uint64_t>(size(), 0), std::vector<std::uint64_t>(size(), 0)};
  std::exclusive_scan(lengths.begin(), lengths.end(), layout.output.begin(), std::uint64_t{0});
  const auto total = layout.output.back() + lengths.back();
  if (total > kTextLimit) throw Error(Code::internal, "texts of " + std::to_string(total) + " bytes were announced", label);
  std::string all(total, '\0');
  auto whole = start(program, layout, {reinterpret_cast<const std::byte*>(own.data()), reinterpret_cast<std::byte*>(all.data())}, label);
  wait(whole);
  std::vector<std::string> texts;
  for (net::Rank r = 0; r < size(); ++r) texts.push_back(all.substr(layout.output[r], lengths[r]));
  return texts;
}

}  // namespace shoal::nn
