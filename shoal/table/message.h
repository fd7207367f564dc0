// What members say to each other about rows: a header of 48 bytes and a bounded body. Everything is in the byte order of x86 and ARM; what
// comes from outside is checked here, before anybody uses it. Values.
//
//   to the server                                      to a reader
//   open     the table's description                   opened   it is there
//   update   what a worker added, of one clock         refused  why not
//   request  rows of an age                            rows     values, their age, what of the reader's own is in them
//   unsubscribe  push these rows no more (copies.h)    changes  the same of some columns, where the reader has the rows (changes.h)
//   assign   new values                                clock    every row that was read and is pushed has this age
//   rule     another rate, from a clock on             assigned they hold
//   flush    all was sent; what consistency follows     flushed  everybody's increments are in the rows
//   reset    all rows are as nobody had written them   saved    a part of a snapshot is written, or why not
//   put      rows as an image has them (image.h)       stamp    of the rows before it (released.h)
//   fetch    the same, of an age                       fetched  here they are
//   call     a function on rows of an age              called   what it returned (functions.h)
//   save     write a part of a snapshot of a clock     visible  who reads here has the reader's own parts up to this
//   keep     of which snapshot to keep parts           leaving  to all members: it asks for nothing more
//   seen     a stamp, back                             clocks   each worker's, where others than the slowest count
//   last_clocks  to all members: the clocks of workers that are lost (last_clocks.h)
//   kept   to all members: what this one has of tables where others have come in place of lost ones (kept.h)
//
//   and where another member is to hold a shard, too (handover.h)
//   invite   to it: the table's description             joins    to all members: it will hold the shard
//   more     from it: the next piece                    holds    to all: it does
//   follow   what comes now goes to it, too             lacks    to all: it does not, and will not
//   last     nothing more comes, to any table           goes     to all: it is to hold the shard no longer
//   move     another member is to hold the shard        parts    to all: it does not
//   retire   a worker adds nothing more
//   given_state, given_batch, given_rows: the pieces
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shoal/table/consistency.h"
#include "shoal/table/row_map.h"

namespace shoal::table {

enum class Kind : std::uint8_t {
  open = 1, update, request, unsubscribe, assign, rule, flush, reset, put, fetch, call, save, keep, seen, last_clocks,
  retire, move, invite, more, follow, last, given_state, given_batch, given_rows,
  opened, refused, rows, clock, assigned, flushed, fetched, called, saved, stamp, visible, clocks, leaving, joins, holds, lacks, goes, parts, kept,
  changes
};
// What an update or assign is the last message of.
enum class Ends : std::uint8_t { nothing, batch, clock };
inline constexpr Kind kLastToServer = Kind::given_rows, kLast = Kind::changes;
inline bool is_given(Kind kind) { return kind >= Kind::given_state && kind <= Kind::given_rows; }
inline bool has_state(Kind kind) { return kind == Kind::put || kind == Kind::given_rows; }  // of the rule, behind each row's values
// What all holders of a shard are told alike: they are what these messages have made of them.
inline bool is_written(Kind kind) {
  return kind == Kind::open || kind == Kind::update || kind == Kind::assign || kind == Kind::rule || kind == Kind::flush || kind == Kind::reset ||
         kind == Kind::put || kind == Kind::retire;
}

struct Header {
  std::uint32_t length = 0;    // bytes of the body
  Kind kind = Kind::clock;
  Ends ends = Ends::nothing;   // of update, assign; of called: batch if it wrote rows
  std::uint16_t shard = 0;     // which one of the table's
  std::uint64_t table = 0;
  std::uint64_t sequence = 0;  // of update: the number of its batch among the sender's; to a reader: its batches up to this are in the rows;
                               // of fetch, call, save and their answers: the number of the question among the asker's; of a handover: its number;
                               // of unsubscribe: its number among the sender's to this shard, of request: that of the last before it (copies.h)
  Clock clock = 0;             // of update: its timestamp, kLastClock where a barrier ends it before its clock does; of request, fetch and call: the
                               // age that is needed; of flush and save: the worker's; to a reader: the age
  std::uint32_t worker = 0;    // of update, flush, retire; of call: the length of the function's name; of joins, move: the rank that does
  std::uint32_t count = 0;     // rows; of clock: batches of the reader that came too late
  std::uint64_t heard = 0;     // of update: how many messages of rows its worker had read from (heard.h); of what tells a clock: barriers that are over;
                               // of rows, changes: the number of the reader's last unsubscribe that its server knows of
};
static_assert(sizeof(Header) == 48);

inline constexpr std::size_t kLongestBody = std::size_t{1} << 30, kLongestText = 4096;

struct Message {
  Header header;
  Bytes body;

  // `count` keys (of clocks: a clock for each worker), and behind them count * width values where there are any.
  std::span<const Key> keys() const { return {reinterpret_cast<const Key*>(body.data()), header.count}; }
  template <class T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(body.data() + header.count * sizeof(Key)), (body.size() - header.count * sizeof(Key)) / sizeof(T)};
  }
  std::string text() const { return {reinterpret_cast<const char*>(body.data()), body.size()}; }

  // Room for `rows` rows of `bytes_a_row`.
  static Message of_rows(Kind kind, std::uint64_t table, std::size_t rows, std::size_t bytes_a_row, const BytesPool& pool = *BytesPool::of_process());
  static Message of_changes(std::uint64_t table, std::size_t rows, std::size_t bytes, const BytesPool& pool = *BytesPool::of_process());  // changes.h
  static Message of_text(Kind kind, std::uint64_t table, const std::string& text);
  // A header alone, to be filled in.
  static Message of_kind(Kind kind, std::uint64_t table, std::uint64_t sequence = 0) {
    Message message;
    message.header.sequence = sequence;
    message.header.kind = kind;
    message.header.table = table;
    return message;
  }
  Key* key_places() { return reinterpret_cast<Key*>(body.data()); }
  template <class T>
  T* value_places() {
    return reinterpret_cast<T*>(body.data() + header.count * sizeof(Key));
  }
};

// Messages that are sent together, when there is one.
inline std::vector<Message> alone(Message message) {
  std::vector<Message> messages;
  messages.push_back(std::move(message));
  return messages;
}

// Why a header cannot be one; empty: it can. `to_server`: the lane on which it came.
std::string fault_of(const Header& header, bool to_server);
// The same of the body, for a table whose rows have `bytes_a_row` bytes.
std::string fault_of(const Message& message, std::size_t bytes_a_row);

}  // namespace shoal::table
