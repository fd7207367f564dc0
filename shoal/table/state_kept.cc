// The tables of a member that meets the others anew (kept.h).
#include <algorithm>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/table/state.h"

namespace shoal::table {

void Tables::State::check_bears_losses(const Spec& spec) const {
  if (survives) check_survives(spec);
  if (regroups) check_goes_back(spec);
}

void Tables::State::stop(const net::Failure& why) {
  if (stopped.exchange(true)) return;
  for (const auto& [shard, of_shard] : saves) of_shard->end();
  served.each([](Server& server) { server.stop(); });
  meeting.early.clear();
  const std::lock_guard lock(end_mutex);
  if (!end) end = why;
}

void Tables::State::take_kept_of(State& before) {
  if (!before.mail) return;
  before.stop(std::make_shared<const Error>(Code::cancelled, "all members meet anew", "tables"));
  kept = std::exchange(before.meeting.over ? before.served : before.kept, {});
  was_there = before.meeting.over || before.was_there;
  if (was_there) placement = before.placement;
}

// What is still on its way to this member, and what it is about to let go, others have.
void Tables::State::tell_kept() {
  std::vector<Kept> all;
  kept.each_named([&all](std::uint64_t, std::size_t shard, const Server& server) {
    if (server.is_whole() && !server.has_parted()) all.push_back(server.kept(shard));
  });
  for (net::Rank rank = 0; rank < transport.size(); ++rank) mail->send(rank, alone(message_of(Told{was_there, placement, all})));
}

void Tables::State::hear_kept(net::Rank from, const Message& message) {
  if (meeting.over) {
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " meets the others anew while they go on", "tables", "run the same program on all members");
  }
  meeting.told.insert_or_assign(from, told_from(message, from, transport.size()));
  if (meeting.told.size() == transport.size()) begin();
}

void Tables::State::begin() {
  std::vector<Told> by_rank;
  for (auto& [rank, told] : std::exchange(meeting.told, {})) by_rank.push_back(std::move(told));
  placement = agree(by_rank).joined_by(may_serve);
  starts = conclude(by_rank, placement);
  make_saves();
  for (const auto& [table, start] : starts) {
    holdings->begin_with(table, start);
    for (std::size_t shard = 0; shard < start.holders.size(); ++shard) {
      if (!std::ranges::count(start.holders[shard], rank())) continue;
      Server& before = *kept.find(table, shard);
      served.add(table, shard, make_server(shard, before.spec())).take_over(before, start.at, start.consistency);
    }
  }
  kept.clear();
  meeting.over = true;
  for (auto& [from, message] : std::exchange(meeting.early, {})) deliver(from, std::move(message));
  holdings->mend();
  meeting.look();
}

// Of the shards that there are: parts of snapshots.
void Tables::State::make_saves() {
  const OnDisk writes = disk ? disk : [this](std::function<void()> job) { own_disk->run(std::move(job)); };
  const auto answer = [this](net::Rank to, Message message) { mail->send(to, alone(std::move(message))); };
  const auto shards = static_cast<std::uint32_t>(placement.shards());
  for (std::uint32_t shard = 0; shard < shards; ++shard) saves[shard] = std::make_shared<Saves>(transport, writes, shard, shards, answer);
}

}  // namespace shoal::table
