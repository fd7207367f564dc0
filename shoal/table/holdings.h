// Who holds which shard of each table, as this member knows it, and what it does about that: a shard that has lost a holder gets another one; and one
// that is to be moved gets another one, and then the old one goes.
//
// The first of those that have a whole shard sees to it: who that is follows from what all know, so that nobody is elected. It gives one shard at a
// time (handover.h), to the server that holds least, or where it is asked to.
//
//   who goes -> all     goes      ask others; when a member does, it marks its stream
//   who goes -> all     parts     once all have, what they had asked is answered, and enough others hold the shard: write to others
//                                 when all have marked their streams again, the shard is let go; or
//                     holds     because nobody is left who could: ask again
//
// Threads: the transport's loop. Lifetime: what it is made of outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shoal/table/holders.h"
#include "shoal/table/kept.h"
#include "shoal/table/message.h"
#include "shoal/table/placement.h"
#include "shoal/table/reader.h"
#include "shoal/table/served.h"

namespace shoal::table {

class Holdings {
 public:
  struct Around {
    net::Rank me, members;
    const Placement& placement;
    Served& served;
    std::function<void(net::Rank to, Message message)> send;
    std::function<Reader*(std::uint64_t table)> reader;                // who reads it here; none: nobody has opened it
    std::function<std::unique_ptr<Server>(std::size_t shard, const Spec& spec)> make_server;
    std::function<bool(std::uint64_t table)> agreed;                   // what of lost workers counts
  };
  explicit Holdings(Around around);

  std::vector<Holders>& of(std::uint64_t table);      // by shard
  // A table that goes on where members have met anew (kept.h).
  void begin_with(std::uint64_t table, const Start& start);
  bool knows(std::uint64_t table) const { return holders_.contains(table); }
  // Of kind move, invite, joins, holds, lacks, goes, parts or last. Throws Error{mismatch}.
  void take(net::Rank from, const Message& message);
  void wanted(const Message& more);                    // before the server takes it
  void received(std::uint64_t table, std::size_t shard);  // a piece of it
  bool follows(net::Rank from, const Message& mark);   // whether it is a mark for a shard that goes
  void part();                                         // from those that go and may
  void depart();                                       // this member goes from all that it holds, and holds nothing any more
  bool holds_nothing() const { return going_.empty() && receiving_.empty() && !giving_ && served_nothing(); }
  void loses(net::Rank member);
  void leaves(net::Rank member) { left_[member] = true; }
  void mend();                                         // when something of the above may let it
  void end();                                          // this member leaves
  std::optional<net::Rank> lost() const;               // the last holder of some shard, when all of them are

 private:
  using Place = std::pair<std::uint64_t, std::size_t>; // table and shard
  struct Giving {
    Place place;
    net::Rank to;
    std::uint64_t number;
    bool moves = false;                                // in place of this member
    bool told = false, over = false;                   // to all members; given up, but for the receiver's word
  };
  struct Going {
    std::uint64_t number;
    std::vector<bool> marked;                          // by rank
    bool parted = false;
  };
  void spread(std::uint64_t table);                    // over who has joined (kept.h), as a table becomes known
  void ask_to_move(const Place& place, net::Rank to);  // where this member answers for it
  void begin(const Place& place, net::Rank to, bool moves);
  void go(const Place& place);
  void stay_where_needed();                            // where it was to go, and nobody can take its place
  std::uint64_t next_number() { return (std::uint64_t{around_.me} << 40) + ++begun_; }
  bool all_marked(const Going& going) const;
  bool served_nothing() const;
  std::size_t wanted_holders() const;                  // of each shard: as many as there can be
  void give_up();
  void abandon(const Place& place);                    // what is received
  void tell_all(Message message);
  Message about(Kind kind, const Place& place, std::uint64_t number, std::uint64_t handover = 0) const;
  Message lacks(const Place& place, std::uint64_t number) const;
  std::optional<net::Rank> least_loaded(const Holders& but) const;

  const Around around_;
  std::map<std::uint64_t, std::vector<Holders>> holders_;
  std::vector<bool> silent_, left_, lost_;             // by rank; silent: writes nothing any more; left: holds nothing more
  std::optional<Giving> giving_;
  std::map<Place, std::uint64_t> receiving_;           // by which number
  std::map<Place, std::uint64_t> received_;            // and what came so, and is held
  std::map<Place, net::Rank> moves_;                   // that were asked for
  std::map<Place, Going> going_;
  std::uint64_t begun_ = 0;
  bool ended_ = false, departs_ = false;
};

}  // namespace shoal::table
