#include "shoal/table/holdings.h"

#include <algorithm>
#include <string>

#include "shoal/core/error.h"

namespace shoal::table {

Holdings::Holdings(Around around)
    : around_(std::move(around)), silent_(around_.members), left_(around_.members), lost_(around_.members) {}

std::vector<Holders>& Holdings::of(std::uint64_t table) {
  const auto [of_table, is_new] = holders_.try_emplace(table);
  for (std::size_t shard = 0; is_new && shard < around_.placement.shards(); ++shard) {
    Holders& holders = of_table->second.emplace_back(around_.placement.first_holders(shard));
    for (net::Rank rank = 0; rank < around_.members; ++rank) {
      if (lost_[rank]) holders.loses(rank);
    }
  }
  if (is_new) spread(table);
  return of_table->second;
}

void Holdings::begin_with(std::uint64_t table, const Start& start) {
  std::vector<Holders>& of_table = holders_[table];
  for (const auto& ranks : start.holders) of_table.emplace_back(ranks, start.at.clock, start.at.met);
  spread(table);
}

void Holdings::spread(std::uint64_t table) {
  if (around_.placement.joined().empty()) return;
  std::vector<std::vector<net::Rank>> holders;
  for (const Holders& of_shard : of(table)) holders.push_back(of_shard.all());
  for (const Moving& move : spread_over_joined(table, std::move(holders), around_.placement)) ask_to_move({move.table, move.shard}, move.to);
}

void Holdings::ask_to_move(const Place& place, net::Rank to) {
  const std::vector<net::Rank> staying = of(place.first)[place.second].staying();
  if (!staying.empty() && staying.front() == around_.me && to != around_.me) moves_[place] = to;
}

Message Holdings::about(Kind kind, const Place& place, std::uint64_t number, std::uint64_t handover) const {
  Message message = Message::of_kind(kind, place.first, number);
  message.header.heard = handover;
  message.header.shard = static_cast<std::uint16_t>(place.second);
  return message;
}

// Who departs says so with it: it may hold nothing, and so have had nothing to go from, and would be asked again and again.
Message Holdings::lacks(const Place& place, std::uint64_t number) const {
  Message message = about(Kind::lacks, place, number);
  if (departs_) message.header.ends = Ends::clock;
  return message;
}

void Holdings::tell_all(Message message) {
  for (net::Rank rank = 0; rank < around_.members; ++rank) {
    if (!lost_[rank]) around_.send(rank, message);
  }
}

void Holdings::take(net::Rank from, const Message& message) {
  const Header& header = message.header;
  const Place place{header.table, header.shard};
  if (header.shard >= around_.placement.shards() || ((header.kind == Kind::joins || header.kind == Kind::move) && header.worker >= around_.members)) {
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " speaks of a shard that there is not", "tables", "run the same program on all members");
  }
  if (lost_[from]) return;
  Reader* const reader = around_.reader(header.table);
  switch (header.kind) {
    case Kind::last:
      silent_[from] = true;
      around_.served.each([&](Server& server) { server.take(from, message); });
      break;
    case Kind::move: {
      const std::vector<net::Rank> staying = of(header.table)[header.shard].staying();
      if (staying.empty() || ended_) return;           // there is nobody to move it from
      if (staying.front() != around_.me) return around_.send(staying.front(), message);
      ask_to_move(place, header.worker);
      return mend();
    }
    case Kind::invite: {
      if (receiving_.contains(place)) abandon(place);
      if (message.body.empty() || ended_ || departs_) {  // it was given up
        if (!message.body.empty()) tell_all(lacks(place, header.sequence));
        return;
      }
      if (going_.contains(place)) {                    // all know that it has parted, or will not know that it was here
        around_.served.remove(place.first, place.second);
        going_.erase(place);
      }
      Server& server = around_.served.add(place.first, place.second, around_.make_server(place.second, spec_from(message.text())));
      for (net::Rank rank = 0; rank < around_.members; ++rank) {
        if (lost_[rank]) server.lose(rank);
      }
      receiving_[place] = header.sequence;
      server.expect(from, header.sequence);
      break;
    }
    case Kind::joins:
      if (lost_[header.worker]) return;
      of(header.table)[header.shard].joins(header.worker, header.sequence, header.ends != Ends::nothing);
      if (reader) return reader->joins(header.shard, header.worker, header.sequence, header.ends != Ends::nothing, from);
      for (const net::Rank to : {from, static_cast<net::Rank>(header.worker)}) around_.send(to, about(Kind::follow, place, header.sequence));
      break;
    case Kind::goes:
      left_[from] = left_[from] || header.ends == Ends::clock;
      of(header.table)[header.shard].goes(from, header.heard);
      reader ? reader->goes(header.shard, from, header.heard, header.sequence) : around_.send(from, about(Kind::follow, place, header.sequence));
      return mend();
    case Kind::parts:
      of(header.table)[header.shard].parts(from, header.heard);
      reader ? reader->parts(header.shard, from, header.heard, header.sequence) : around_.send(from, about(Kind::follow, place, header.sequence));
      return mend();
    default: {
      Holders& holders = of(header.table)[header.shard];
      const bool holds = header.kind == Kind::holds;
      left_[from] = left_[from] || header.ends == Ends::clock;
      holds ? holders.holds(from, header.sequence) : holders.lacks(from, header.sequence);
      if (reader) holds ? reader->holds(header.shard, from, header.sequence) : reader->lacks(header.shard, from, header.sequence);
      if (giving_ && giving_->number == header.sequence) {
        around_.served.find(place.first, place.second)->give_up();
        if (holds && giving_->moves) go(place);
        giving_.reset();
      }
      part();
      mend();
    }
  }
}

void Holdings::wanted(const Message& more) {
  if (!giving_ || giving_->number != more.header.sequence || giving_->over || std::exchange(giving_->told, true)) return;
  around_.served.find(giving_->place.first, giving_->place.second)->give(giving_->to, giving_->number, silent_);
  Message joins = about(Kind::joins, giving_->place, giving_->number);
  joins.header.worker = giving_->to;
  if (giving_->moves) joins.header.ends = Ends::batch;
  tell_all(std::move(joins));
}

void Holdings::received(std::uint64_t table, std::size_t shard) {
  const auto expected = receiving_.find({table, shard});
  const Server* const server = around_.served.find(table, shard);
  if (expected == receiving_.end() || !server->is_whole()) return;
  tell_all(about(Kind::holds, expected->first, expected->second));
  received_[expected->first] = expected->second;
  receiving_.erase(expected);
}

void Holdings::loses(net::Rank member) {
  lost_[member] = silent_[member] = true;
  for (auto& [table, shards] : holders_) {
    for (Holders& holders : shards) holders.loses(member);
  }
  while (!receiving_.empty()) abandon(receiving_.begin()->first);
  give_up();
  if (giving_ && giving_->to == member) giving_.reset();
  std::erase_if(moves_, [member](const auto& move) { return move.second == member; });
  part();
}

// Whoever receives it says so.
void Holdings::give_up() {
  if (!giving_ || std::exchange(giving_->over, true)) return;
  around_.served.find(giving_->place.first, giving_->place.second)->give_up();
  around_.send(giving_->to, about(Kind::invite, giving_->place, giving_->number));
}

void Holdings::abandon(const Place& place) {
  around_.served.remove(place.first, place.second);
  tell_all(lacks(place, receiving_.at(place)));
  receiving_.erase(place);
}

void Holdings::end() {
  ended_ = true;
  while (!receiving_.empty()) abandon(receiving_.begin()->first);
  give_up();
}

void Holdings::mend() {
  stay_where_needed();
  if (giving_ || ended_) return;
  std::optional<std::pair<Place, net::Rank>> next;
  bool moves = false;
  around_.served.each_named([&](std::uint64_t table, std::size_t shard, const Server& server) {
    if (next || !server.is_whole() || server.has_parted() || !around_.agreed(table)) return;
    const Place place{table, shard};
    const Holders& holders = of(table)[shard];
    const std::vector<net::Rank> whole = holders.whole(), staying = holders.staying();
    if (holders.joining() || whole.empty() || (staying.empty() ? whole : staying).front() != around_.me) return;
    if (const auto asked = moves_.find(place); asked != moves_.end()) {
      const net::Rank to = asked->second;
      moves_.erase(asked);
      if (holders.has(to)) return go(place);            // it has come to hold it meanwhile
      if (!left_[to] && !lost_[to]) {
        next = {place, to};
        moves = true;
        return;
      }
    }
    if (staying.size() >= around_.placement.replicas()) return;
    if (const auto to = least_loaded(holders)) next = {place, *to};
  });
  if (next) begin(next->first, next->second, moves);
}

// --- going

void Holdings::go(const Place& place) {
  const auto came = received_.find(place);
  const auto [going, is_new] = going_.try_emplace(place, Going{next_number(), std::vector<bool>(around_.members), false});
  if (!is_new) return;
  Message goes = about(Kind::goes, place, going->second.number, came == received_.end() ? 0 : came->second);
  if (departs_) goes.header.ends = Ends::clock;
  tell_all(std::move(goes));
}

void Holdings::stay_where_needed() {
  if (departs_) return;
  std::erase_if(going_, [this](const auto& place) {
    const auto& [at, going] = place;
    const Holders& holders = of(at.first)[at.second];
    const std::vector<net::Rank> whole = holders.whole(), staying = holders.staying();
    if (going.parted || holders.joining() || staying.size() >= wanted_holders() || least_loaded(holders)) return false;
    const auto can_stay = [this](net::Rank rank) { return !left_[rank]; };
    const auto first = std::ranges::find_if(whole, can_stay);
    const bool last = staying.empty() && first != whole.end() && *first == around_.me;
    if (!last && whole.size() > wanted_holders()) return false;
    const auto came = received_.find(at);
    tell_all(about(Kind::holds, at, came == received_.end() ? 0 : came->second));
    return true;
  });
}

void Holdings::depart() {
  departs_ = left_[around_.me] = true;
  while (!receiving_.empty()) abandon(receiving_.begin()->first);
  around_.served.each_named([this](std::uint64_t table, std::size_t shard, const Server&) { go({table, shard}); });
}

bool Holdings::served_nothing() const {
  bool nothing = true;
  around_.served.each([&nothing](const Server&) { nothing = false; });
  return nothing;
}

bool Holdings::follows(net::Rank from, const Message& mark) {
  const auto going = going_.find({mark.header.table, mark.header.shard});
  if (going == going_.end() || going->second.number != mark.header.sequence) return false;
  going->second.marked[from] = true;
  part();
  return true;
}

bool Holdings::all_marked(const Going& going) const {
  for (net::Rank rank = 0; rank < around_.members; ++rank) {
    if (!going.marked[rank] && !lost_[rank] && !silent_[rank]) return false;
  }
  return true;
}

std::size_t Holdings::wanted_holders() const {
  const auto stays = [this](net::Rank rank) { return !lost_[rank] && !left_[rank]; };
  return std::min<std::size_t>(around_.placement.replicas(), static_cast<std::size_t>(std::ranges::count_if(around_.placement.servers(), stays)));
}

void Holdings::part() {
  std::erase_if(going_, [this](const auto& place) {
    const auto& [at, going] = place;
    if (!going.parted || !all_marked(going)) return false;
    around_.served.remove(at.first, at.second);
    received_.erase(at);
    return true;
  });
  for (auto& [at, going] : going_) {
    if (going.parted || !all_marked(going)) continue;
    Server* const server = around_.served.find(at.first, at.second);
    const Holders& holders = of(at.first)[at.second];
    const std::vector<net::Rank> whole = holders.whole(), staying = holders.staying();
    const auto goes = [&](net::Rank rank) { return !std::ranges::count(staying, rank); };
    const bool first = *std::ranges::find_if(whole, goes) == around_.me;  // of several that go, one after the other: the next may have to come back
    const bool enough = staying.size() >= wanted_holders() || (first && !staying.empty() && whole.size() > wanted_holders());
    if (!enough || staying.empty() || !server->is_idle()) continue;
    server->part();
    going = {next_number(), std::vector<bool>(around_.members), true};
    const auto came = received_.find(at);
    tell_all(about(Kind::parts, at, going.number, came == received_.end() ? 0 : came->second));
  }
}

void Holdings::begin(const Place& place, net::Rank to, bool moves) {
  giving_ = Giving{place, to, next_number(), moves};
  Message invite = Message::of_text(Kind::invite, place.first, text_of(around_.served.find(place.first, place.second)->spec()));
  invite.header.shard = static_cast<std::uint16_t>(place.second);
  invite.header.sequence = giving_->number;
  around_.send(to, std::move(invite));
}

std::optional<net::Rank> Holdings::least_loaded(const Holders& but) const {
  std::vector<std::size_t> load(around_.members);
  for (const auto& [table, shards] : holders_) {
    for (const Holders& holders : shards) {
      for (const net::Rank rank : holders.all()) ++load[rank];
    }
  }
  std::optional<net::Rank> least;
  for (const net::Rank rank : around_.placement.servers()) {
    if (!lost_[rank] && !left_[rank] && !but.has(rank) && (!least || load[rank] < load[*least])) least = rank;
  }
  return least;
}

std::optional<net::Rank> Holdings::lost() const {
  for (const auto& [table, shards] : holders_) {
    for (const Holders& holders : shards) {
      if (holders.lost()) return holders.last_first();
    }
  }
  return std::nullopt;
}

}  // namespace shoal::table
