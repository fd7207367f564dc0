#include "shoal/net/inproc.h"

#include <algorithm>

#include "shoal/net/inproc_world.h"

namespace shoal::net {

using namespace scripted;

// --- the world

bool InprocJob::World::step() {
  if (events.empty()) return false;
  std::pop_heap(events.begin(), events.end(), Later{});
  Event event = std::move(events.back());
  events.pop_back();
  now = event.when;
  if (event.member != kNobody && members[event.member]->stopped) return true;
  const Rank before = std::exchange(running, event.member);
  event.fn();
  running = before;
  return true;
}

void InprocJob::World::travel(Rank from, Rank to, Connection connection, std::size_t bytes, std::function<void()> arrive) {
  Peer& way = members[from]->peer(to);
  way.stats.wire_sent += bytes + kHeader;
  Instant& last = way.last_arrival[connection];
  last = std::max(last, now + delay());
  schedule(last, kNobody, [this, from, to, bytes, arrive = std::move(arrive)]() mutable {
    if (members[from]->peer(to).cut) return;
    members[to]->peer(from).stats.wire_received += bytes + kHeader;
    schedule(enter(to, bytes), to, std::move(arrive));
  });
}

Failure InprocJob::World::loss_of(Rank lost, const std::string& how) const {
  const InprocMember& member = *members[lost];
  std::string fact = "rank " + std::to_string(lost) + " (" + member.host(lost) + ") was lost: " + how;
  if (!member.activity().empty()) fact += "; it last did: " + member.activity();
  return std::make_shared<const Error>(Code::peer_lost, fact);
}

void InprocJob::World::found_closed(Rank finder, Rank lost) {
  InprocMember& member = *members[finder];
  if (member.stopped || member.failure()) return;
  const Failure why = loss_of(lost, "connection closed");
  if (shrinks()) return member.go_on_without(lost, why);
  tell_all(finder, [why](InprocMember& other) { other.end(why); });
  member.end(why);
}

void InprocJob::World::found_silent(Rank finder, Rank lost) {
  InprocMember& member = *members[finder];
  if (member.stopped || member.failure() || member.lost(lost)) return;
  bool alone = members.size() > 2;
  for (Rank other = 0; other < members.size(); ++other) alone = alone && (other == finder || member.peer(other).cut || member.lost(other));
  if (!alone && shrinks()) {
    tell_all(finder, [finder, lost](InprocMember& other) { other.silent(finder, lost); });
    return member.silent(finder, lost);
  }
  const Failure why = alone ? std::make_shared<const Error>(Code::peer_lost, "this member (rank " + std::to_string(finder) +
                                                                                 ") is cut off: it heard nobody for 5 s")
                            : loss_of(lost, "not heard for 5 s");
  if (shrinks()) return member.drop_out(why);
  tell_all(finder, [why](InprocMember& other) { other.end(why); });
  member.end(why);
}

void InprocJob::World::tell_all(Rank teller, const std::function<void(InprocMember&)>& what) {
  for (Rank other = 0; other < members.size(); ++other) {
    if (other == teller) continue;
    travel(teller, other, control, 0, [this, teller, other, what] {
      if (!members[other]->lost(teller)) what(*members[other]);
    });
  }
}

// --- the job

InprocJob::InprocJob(Rank size, const ScriptedNetwork& network) : world_(std::make_unique<World>()) {
  world_->network = network;
  world_->rates.assign(size, network.rate);
  world_->out.resize(size);
  world_->in.resize(size);
  for (Rank rank = 0; rank < size; ++rank) world_->members.push_back(std::make_unique<InprocMember>(*world_, rank, size));
}

InprocJob::~InprocJob() = default;

Transport& InprocJob::member(Rank rank) { return *world_->members.at(rank); }

bool InprocJob::run(const std::function<bool()>& until) {
  while (!until || !until()) {
    if (!world_->step()) return !until;
  }
  return true;
}

Instant InprocJob::now() const { return world_->now; }

void InprocJob::at(Nanoseconds after_start, std::function<void()> fn) {
  world_->schedule(Instant{} + after_start, kNobody, std::move(fn));
}

void InprocJob::kill(Rank rank) {
  InprocMember& lost = *world_->members.at(rank);
  if (std::exchange(lost.stopped, true)) return;
  for (Rank other = 0; other < world_->members.size(); ++other) {
    if (other == rank) continue;
    // The close comes after every frame that is still on its way.
    Peer& way = lost.peer(other);
    const Instant drained = std::max(way.last_arrival[control], way.last_arrival[bulk]);
    world_->schedule(drained, kNobody, [this, rank, other] {
      world_->travel(rank, other, control, 0, [this, rank, other] { world_->found_closed(other, rank); });
    });
  }
}

void InprocJob::rate(Rank rank, double bytes_a_second) { world_->rates.at(rank) = bytes_a_second; }

void InprocJob::cut(Rank a, Rank b) {
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
    world_->members.at(from)->peer(to).cut = true;
    world_->schedule(world_->now + kSilence, from, [this, from, to] { world_->found_silent(from, to); });
  }
}

void InprocJob::freeze(Rank rank) {
  if (std::exchange(world_->members.at(rank)->stopped, true)) return;
  for (Rank other = 0; other < world_->members.size(); ++other) {
    if (other == rank) continue;
    world_->schedule(world_->now + kSilence, other, [this, rank, other] { world_->found_silent(other, rank); });
  }
}

std::uint64_t InprocJob::bytes_sent(Rank from, Rank to) const { return world_->members.at(from)->link(to).sent; }

}  // namespace shoal::net
