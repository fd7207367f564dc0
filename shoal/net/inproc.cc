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
    Instant& free = members[to]->ingress_free;
    free = std::max(free, now) + time_on_link(bytes);
    schedule(free, to, std::move(arrive));
  });
}

void InprocJob::World::found_lost(Rank finder, Rank lost, const std::string& why) {
  InprocMember& member = *members[finder];
  if (member.stopped || member.failure()) return;
  bool alone = members.size() > 2;
  for (Rank other = 0; other < members.size(); ++other) alone = alone && (other == finder || member.peer(other).cut);
  std::string fact;
  if (alone) {
    fact = "this member (rank " + std::to_string(finder) + ") is cut off: it heard nobody for 5 s";
  } else {
    const std::string& activity = members[lost]->activity();
    fact = "rank " + std::to_string(lost) + " (" + member.host(lost) + ") was lost: " + why;
    if (!activity.empty()) fact += "; it last did: " + activity;
  }
  const auto failure = std::make_shared<const Error>(Code::peer_lost, fact);
  tell_all(finder, failure);
  member.end(failure);
}

void InprocJob::World::tell_all(Rank teller, const Failure& why) {
  for (Rank other = 0; other < members.size(); ++other) {
    if (other != teller) travel(teller, other, control, 0, [this, other, why] { members[other]->end(why); });
  }
}

// --- the job

InprocJob::InprocJob(Rank size, const ScriptedNetwork& network) : world_(std::make_unique<World>()) {
  world_->network = network;
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
      world_->travel(rank, other, control, 0, [this, rank, other] { world_->found_lost(other, rank, "connection closed"); });
    });
  }
}

void InprocJob::cut(Rank a, Rank b) {
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
    world_->members.at(from)->peer(to).cut = true;
    world_->schedule(world_->now + kSilence, from, [this, from, to] { world_->found_lost(from, to, "not heard for 5 s"); });
  }
}

void InprocJob::freeze(Rank rank) {
  if (std::exchange(world_->members.at(rank)->stopped, true)) return;
  for (Rank other = 0; other < world_->members.size(); ++other) {
    if (other == rank) continue;
    world_->schedule(world_->now + kSilence, other,
                     [this, rank, other] { world_->found_lost(other, rank, "not heard for 5 s"); });
  }
}

std::uint64_t InprocJob::bytes_sent(Rank from, Rank to) const { return world_->members.at(from)->link(to).sent; }

}  // namespace shoal::net
