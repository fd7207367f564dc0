#include "shoal/table/tables.h"

#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/event.h"
#include "shoal/net/call.h"
#include "shoal/table/state.h"

namespace shoal::table {

Tables::Tables(net::Transport& transport, const TablesOptions& options, Tables* before) : state_(std::make_shared<State>(transport, options)) {
  const std::shared_ptr<State> group_before = before ? before->state_ : nullptr;
  const bool begun = net::call(transport, [state = state_, channel = options.channel, group_before] {
    const auto deliver = [raw = state.get()](net::Rank from, Message message) { raw->deliver(from, std::move(message)); };
    const auto drained = [raw = state.get()](net::Rank to) {
      raw->served.each([to](Server& server) { server.drained(to); });
    };
    state->mail = std::make_unique<Mail>(state->transport, channel, "tables", deliver, drained);
    const auto answer = [raw = state.get()](net::Rank to, Message message) { raw->mail->send(to, alone(std::move(message))); };
    state->last_clocks = std::make_unique<LastClocks>(state->workers, state->transport.size(), state->clocks_here(answer));
    const auto reader = [raw = state.get()](std::uint64_t table) {
      const auto read = raw->read.find(table);
      return read == raw->read.end() ? nullptr : read->second.get();
    };
    const auto make_server = [raw = state.get()](std::size_t shard, const Spec& spec) { return raw->make_server(shard, spec); };
    const auto agreed = [raw = state.get()](std::uint64_t table) { return raw->last_clocks->agreed(table); };
    state->holdings = std::make_unique<Holdings>(
        Holdings::Around{state->rank(), state->transport.size(), state->placement, state->served, answer, reader, make_server, agreed});
    if (group_before) state->take_kept_of(*group_before);
    state->regroups ? state->tell_kept() : state->make_saves();
    state->transport.on_lost([weak = std::weak_ptr<State>(state)](net::Rank member, const net::Failure& why) {
      const auto alive = weak.lock();
      if (alive && alive->mail) alive->regroups ? alive->stop(why) : alive->lose(member);
    });
  });
  if (!begun) throw Error(Code::cancelled, "the transport has ended", "tables");
}

Tables::~Tables() {
  state_->say_goodbye();
  // Others may wait for what this member has said.
  const auto all_left = [&] {
    for (net::Rank rank = 0; rank < state_->transport.size(); ++rank) {
      if (!state_->transport.lost(rank) && state_->mail->unsent(rank) > 0) return false;
    }
    return true;
  };
  net::wait_for(state_->transport, [&] { return state_->stopped || state_->transport.failure() || all_left(); }, net::kLoopAnswers);
  net::call(state_->transport, [state = state_] {
    state->mail.reset();
    for (const auto& [shard, saves] : state->saves) saves->end();
    state->served.clear();
    state->kept.clear();
    state->read.clear();
  });
  state_->own_disk.reset();
  state_->own_functions.reset();
  state_->functions->clear();
}

// What `shoal explain` tells of tables.
void Tables::State::note_telemetry() {
  const std::lock_guard lock(mutex);
  for (const auto& [id, known] : opened) {
    const std::string line = known.second->summary();
    const Instant now = steady_now();
    if (!line.empty()) Events::local().record({.kind = EventKind::note, .begin = now, .end = now, .name = Events::local().intern(line)});
  }
}

void Tables::State::say_goodbye() {
  if (std::exchange(said_goodbye, true)) return;
  note_telemetry();
  if (stopped) return;                                     // nobody of this group needs anything any more
  transport.post([self = shared_from_this()] {
    if (self->mail && !self->stopped) self->holdings->end();
  });
  for (net::Rank rank = 0; rank < transport.size(); ++rank) {
    mail->send(rank, alone(Message::of_kind(Kind::last, 0)));
    mail->send(rank, alone(Message::of_kind(Kind::leaving, 0)));
  }
}

void Tables::depart_begin() {
  if (state_->regroups) {
    throw Error(Code::unsupported, "no member departs where others come in place of those that are lost", "tables", "--on-peer-lost shrink");
  }
  if (state_->placement.replicas() == 1) {
    throw Error(Code::unsupported, "rank " + std::to_string(state_->rank()) + " cannot depart: nobody else may hold its rows", "tables",
                "--on-peer-lost shrink, and two servers or more");
  }
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [id, known] : state_->opened) known.second->retire_all();
  }
  state_->transport.post([self = state_] {
    if (!self->mail) return;
    self->departs = true;
    self->holdings->depart();
    self->note_departure();
  });
}

bool Tables::departed() const { return state_->departure.over; }

void Tables::depart() {
  depart_begin();
  state_->waiting.until([this] { return departed(); }, state_->departure, "others to hold this member's rows", "");
  state_->say_goodbye();
}

void Tables::leave() {
  state_->say_goodbye();
  if (departed()) return;
  const Answers& leaving = state_->leaving;
  state_->waiting.until([&] { return leaving.complete(); }, leaving, "all members to leave their tables", "");
}

Functions& Tables::functions() { return *state_->functions; }

Worker Tables::worker(std::uint32_t index) {
  if (index >= state_->workers.count_of(state_->transport.rank())) {
    throw Error(Code::invalid_argument, "rank " + std::to_string(state_->transport.rank()) + " has no worker " + std::to_string(index), "tables");
  }
  return {state_, index};
}

template <class T>
void Table<T>::move(std::size_t shard, net::Rank to) {
  refuse_inside_function(spec_.name);
  const auto refuse = [&](const std::string& what, const std::string& hint) { throw Error(Code::invalid_argument, what, "table " + spec_.name, hint); };
  const Placement& placement = servers_->all_shards();
  const std::string part = "part " + std::to_string(shard), rank = "rank " + std::to_string(to);
  if (shard >= placement.shards()) refuse("there is no " + part, "0 to " + std::to_string(placement.shards() - 1));
  if (!std::ranges::count(placement.servers(), to) || servers_->is_lost(to)) refuse(rank + " serves no rows", "name a member that serves");
  if (placement.replicas() == 1) refuse(part + " cannot move: nothing may be held twice here", "--on-peer-lost shrink, and two servers or more");
  const std::vector<net::Rank> before = holders()[shard];
  if (before.empty() || std::ranges::count(before, to)) refuse(rank + " holds " + part + " already", "name another member");
  copy_->move(shard, to);
  net::Rank asked = before.front();
  waiting_.until(
      [&] {
        if (servers_->is_lost(to)) throw Error(Code::peer_lost, rank + " was lost before it held " + part, "table " + spec_.name, "name another member");
        const std::vector<net::Rank> now = holders()[shard];
        if (std::ranges::count(now, to)) {
          if (!std::ranges::count(now, before.front())) return true;
          // With the one it comes from it is one holder more, until that lets go. Else it has come to hold the part in place of a lost member.
          const auto holds_it = [&](net::Rank server) { return servers_->is_lost(server) || std::ranges::count(now, server); };
          const bool in_transit = now.size() > before.size();
          if (!in_transit && std::ranges::all_of(placement.servers(), holds_it)) refuse(rank + " holds " + part + " already", "name another member");
          return false;
        }
        if (servers_->is_lost(asked) && !now.empty()) {    // it may not have heard
          asked = now.front();
          copy_->move(shard, to);
        }
        return false;
      },
      *copy_, "another member to hold rows of table ", spec_.name);
}
template void Table<float>::move(std::size_t, net::Rank);
template void Table<double>::move(std::size_t, net::Rank);
template void Table<std::int32_t>::move(std::size_t, net::Rank);
template void Table<std::int64_t>::move(std::size_t, net::Rank);

bool Worker::keeps_order() const { return static_cast<bool>(tables_->order); }

template <class T>
Table<T> Worker::open(Spec spec) {
  refuse_inside_function(spec.name);
  spec.type = kTypeOf<T>;
  return {spec, tables_->open<T>(spec), *this, index_, tables_};
}
template Table<float> Worker::open<float>(Spec);
template Table<double> Worker::open<double>(Spec);
template Table<std::int32_t> Worker::open<std::int32_t>(Spec);
template Table<std::int64_t> Worker::open<std::int64_t>(Spec);

}  // namespace shoal::table
