// Shared rows with clocks: the parameter server as the program sees it (Ho et al., NIPS'13; Dai et al., AAAI'15).
//
//   table::Tables tables(job.transport());
//   table::Worker worker = tables.worker();
//   auto weights = worker.open<float>({.name = "weights", .width = 64, .consistency = table::Ssp{3}});
//   for (...) {
//     weights.read(keys, values);       // rows that may lack the last three clocks of the others, and nothing of its own (view(keys): where they lie)
//     weights.add(keys, gradients);     // waits for nothing, but under a bound on values
//     weights.tick();                   // one unit of work is complete; waits only if this worker is far ahead
//   }
//
// Every member may serve rows and have workers; rows are spread over the servers by key. A worker belongs to one thread; workers of one
// member share copies of rows. A table has its own clock: its workers tick it one by one.
//
// Errors: Error{peer_lost} once a member is lost (where others come in place of it, until all meet in the next group), Error{timeout} naming what was waited for, Error{mismatch} where members open a table
// differently, Error{invalid_argument} for values that are not finite.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"
#include "shoal/table/copy.h"
#include "shoal/table/functions.h"
#include "shoal/table/order.h"
#include "shoal/table/saves.h"
#include "shoal/table/snapshot.h"
#include "shoal/table/spec.h"
#include "shoal/table/view.h"

namespace shoal::table {

struct TablesOptions {
  std::vector<net::Rank> servers{};  // who owns rows; none: all members
  std::vector<net::Rank> workers{};  // who has workers; none: all members
  std::uint32_t workers_a_member = 1;
  std::vector<std::uint32_t> workers_of_each{};  // of the members that have some, where not all have as many; none: all have
  Nanoseconds patience = std::chrono::seconds(300);  // of a wait, while all members live
  std::uint16_t channel = 5;         // of the transport's operations; one that nothing else has used
  std::vector<std::uint64_t> shares{};  // by rank, of the rows that members serve (placement.h); none: equal ones
  std::uint32_t parts = 1;           // in which the rows of each server lie, and may move: each costs a message a clock, between each worker and it
  OnDisk disk{};                     // who writes snapshots; none: a thread of its own
  OnDisk functions{};                // who runs functions of calls; none: a thread of its own
  // Bytes of updates to one server, of one table, that it has not counted in, by all members together, each an equal part of it: whoever has more
  // of them waits in tick(). So what waits at a server, and what members keep of what they said, has a bound (under_way.h).
  std::size_t most_under_way = std::size_t{256} << 20;
  // Bytes of copies of rows, of one table, that this member keeps: beyond that those go that were read longest ago, but those that workers read in the
  // clock in which they are (copies.h).
  std::size_t most_copies = std::size_t{2} << 30;
  std::string cold_rows{};           // a folder on this member's disk: rows that it serves lie in a file there (cold_file.h); empty: in memory
  OrderKept order{};                 // of what comes: recorded, or that of an earlier run (order.h); not in jobs that survive the loss of members
};

class Worker;
template <class T>
class Table;

class Tables {
 public:
  // The same options on all members. Lifetime: the transport outlives it; when one goes, others may not need its
  // rows any more: after a barrier, or by leave().
  // before: where others come in place of lost members (net::OnPeerLost::rejoin), what this member had in the group before, if it was in one: tables
  // then go on from the clock on which all agree (kept.h), and `before` is of no more use. Who comes has none, and finds their rows and clock.
  explicit Tables(net::Transport& transport, const TablesOptions& options = {}, Tables* before = nullptr);
  ~Tables();
  Tables(const Tables&) = delete;
  // By all members, after their last use: returns when nobody needs this one's rows any more.
  void leave();
  // By one member, while others go on, in jobs that survive the loss of members: all that its workers have added counts, nobody waits for them any more,
  // and others take over what it holds. The first waits until that is done; then leave() waits for nobody. Tables that others open later must not be.
  // Throws Error{unsupported} where nobody else could hold its rows.
  void depart();
  void depart_begin();
  bool departed() const;
  // The index-th of this member's. Throws Error{invalid_argument} if it has no such worker.
  Worker worker(std::uint32_t index = 0);
  // By all members alike, before any of them calls it: a function of that table's servers (functions.h).
  template <class T>
  void define(const std::string& table, const std::string& function, Function<T> what) {
    refuse_inside_function(table);
    functions().define<T>(table, function, std::move(what));
  }

 private:
  Functions& functions();
  friend class Worker;
  template <class T>
  friend class Table;
  struct State;
  std::shared_ptr<State> state_;
};

class Worker {
 public:
  // By all members; which of them is first does not matter. spec.type becomes T's. Throws Error{mismatch} if another member described the
  // table otherwise.
  template <class T>
  Table<T> open(Spec spec);

  // Whether the order of what comes is recorded, or kept to: what is not in it must not depend on who is quick.
  bool keeps_order() const;

 private:
  friend class Tables;
  Worker(std::shared_ptr<Tables::State> tables, std::uint32_t index) : tables_(std::move(tables)), index_(index) {}
  std::shared_ptr<Tables::State> tables_;
  std::uint32_t index_;
};

template <class T>
struct Called {
  std::vector<Wide<T>> values;       // of each row, one behind the other; without keys: their sum over all rows
  Clock clock;                       // the rows had everything with timestamps below, and nothing later, where clocks are told apart
};

// A table as one worker sees it. Values; the Tables outlive it. Keys of one call may repeat.
template <class T>
class Table {
 public:
  const Spec& spec() const { return spec_; }
  std::size_t width() const { return spec_.width; }
  Clock clock() const { return copy_->clock(worker_); }

  // Rows one below the other: values has keys.size() * width() elements. Waits until the table's consistency allows it. Returns the
  // least age of these rows.
  Clock read(std::span<const Key> keys, std::span<T> values) {
    wait_for(keys);
    return in_turn(Step::read, [&] { return copy_->read(worker_, keys, values); });
  }
  // The rows that read() would give, where they lie: they stay as they are while the view lives, whatever comes, and however this table ends (view.h).
  View<T> view(std::span<const Key> keys) {
    wait_for(keys);
    return in_turn(Step::read, [&] { return copy_->view(worker_, keys); });
  }
  // Asks for rows that will be read, and waits for nothing. clocks: how many of this worker's clocks, behind the one in which it is, they will be read
  // in: after that their servers push them no more (copies.h), and who reads them then asks anew; none: nobody knows. Throws
  // Error{invalid_argument} if `clocks` is negative.
  void intend(std::span<const Key> keys, std::optional<Clock> clocks = {}) {
    in_turn(Step::ask, [&] { copy_->ask(worker_, keys, clocks); });
  }
  // Waits only where the consistency bounds values, until what was added to these rows before is everybody's.
  void add(std::span<const Key> keys, std::span<const T> values) {
    wait(Cause::bound, [&] { return copy_->may_add(worker_, keys, values); }, "readers of table ");
    in_turn(Step::add, [&] { copy_->add(worker_, keys, values); });
  }
  // By one of the workers: another rate, for what anybody adds from its clock on.
  void rule(const Rule& rule) {
    in_turn(Step::rule, [&] { copy_->rule(worker_, rule); });
  }
  // Clocks of this member that came too late: they were complete without it (bsp with backups).
  std::uint64_t dropped() const { return telemetry().dropped; }
  // Completes a unit of work. Waits if this worker is far ahead, or if more than TablesOptions.most_under_way of what it added has not been counted in.
  void tick() {
    end_clock();
    wait(Cause::gate, [&] { return copy_->is_near(worker_); }, "the slowest worker of table ");
    wait(Cause::back_pressure, [&] { return copy_->has_room(worker_); }, "servers to count in what was added to table ");
  }
  // The first half of it, for who waits otherwise until copy().may_go_on().
  void end_clock() {
    refuse_inside_function(spec_.name);
    in_turn(Step::tick, [&] { copy_->tick(worker_); });
  }
  // By all workers: when it returns, what anybody added before is in what everybody reads, and all are at the clock of who was furthest.
  // Who waits here holds nobody back: those who have more to do go on among themselves.
  void barrier() {
    arrive();
    meet();
  }
  // A barrier from which on the consistency is another. By all workers, the same. Throws Error{invalid_argument} if this table cannot have it.
  void switch_to(const Consistency& next) {
    refuse_inside_function(spec_.name);
    Spec changed = spec_;
    changed.consistency = next;
    servers_->check_bears_losses(changed);
    in_turn(Step::flush, [&] { copy_->flush(worker_, next); });
    meet();
  }
  Consistency consistency() const { return copy_->consistency(); }
  // By shard the members that have all of its rows, as far as this one knows; the first of them answers.
  std::vector<std::vector<net::Rank>> holders() const { return copy_->holders(); }
  // By one worker: that server holds the shard in place of who answers for it; returns when it does. Others read and write meanwhile. Throws
  // Error{invalid_argument} where it cannot, Error{peer_lost} if it is lost meanwhile.
  void move(std::size_t shard, net::Rank to);
  Telemetry telemetry() const { return copy_->telemetry(); }  // of all workers of this member
  // Its halves, for who comes to the barriers of several tables: it arrives at all before it waits at one.
  void arrive() {
    refuse_inside_function(spec_.name);
    in_turn(Step::flush, [&] { copy_->flush(worker_); });
  }
  void meet() {
    wait(Cause::barrier, [&] { return copy_->flushed(worker_); }, "all workers at a barrier of table ");
  }
  // New values, out of time: they stand before all increments of clocks that are not complete. When it returns servers have them; others
  // read them when their copies are renewed.
  void assign(std::span<const Key> keys, std::span<const T> values) {
    refuse_inside_function(spec_.name);
    in_turn(Step::assign, [&] { copy_->assign(keys, values); });
    waiting_.until([&] { return copy_->assigning() == 0; }, *copy_, "servers of table ", spec_.name);
  }
  // Rows of full_width() elements: the state of the rule behind the values. fetch(): as the servers have them, and with all that a read would
  // have of whole clocks; put(), by one worker: others read them after a barrier.
  std::size_t full_width() const { return spec_.width + state_width(spec_.rule, spec_.width); }
  void fetch(std::span<const Key> keys, std::span<T> rows);
  void put(std::span<const Key> keys, std::span<const T> rows);
  // This worker's clock, and nothing of it is left over: where all rows are set anew.
  void go_on_from(Clock clock) { in_turn(Step::go_on_from, [&] { copy_->go_on_from(worker_, clock); }); }
  // What a function of the servers returns for these rows, or for all that servers have (functions.h): of the age that a read would need. Nothing of
  // this worker's that is not settled is in it. Throws Error{invalid_argument} with the function's own words.
  Called<T> call(const std::string& function, std::span<const Key> keys, std::span<const Wide<T>> argument);
  // By one worker: everything up to its clock, to the folder `path` (snapshot.h); servers write, all others go on. The first waits until it
  // is there and returns its clock.
  Clock snapshot(const std::string& path) { return snapshot_begin(path).wait(); }
  Snapshot snapshot_begin(const std::string& path) {
    refuse_inside_function(spec_.name);
    return in_turn(Step::question, [&] { return Snapshot(servers_, copy_, spec_, clock(), path); });
  }
  // By all workers: the table is as the newest snapshot at `path` that any of them sees, whatever it was before, with the same bits, on any
  // number of servers; each part must be seen by some worker. Clocks go on at that of the snapshot, which it returns, or from where they
  // are if that is later. Throws Error{invalid_argument} on all of them naming what is missing, damaged or of another table: then nothing has changed.
  Clock restore(const std::string& path);
  Copy<T>& copy() { return *copy_; }

 private:
  friend class Worker;
  template <class Do>
  decltype(auto) in_turn(Step step, const Do& what) {
    return copy_->in_turn(worker_, step, waiting_, what);
  }
  Table(const Spec& spec, std::shared_ptr<Copy<T>> copy, const Worker& by, std::uint32_t worker, std::shared_ptr<Servers> servers)
      : spec_(spec), copy_(std::move(copy)), by_(by), worker_(worker), servers_(std::move(servers)), waiting_(servers_->patience()) {}
  void wait_for(std::span<const Key> keys) {  // until they may be read
    std::size_t at = 0;
    const auto ready = [&] { return copy_->ready(worker_, keys, at); };
    wait(Cause::gate, [&] { return ready() || copy_->may_read(worker_); }, "the slowest worker of table ");
    wait(Cause::fetch, ready, "rows of table ");
  }
  template <class Ready>
  void wait(Cause cause, const Ready& ready, const char* what) {
    refuse_inside_function(spec_.name);
    if (const Nanoseconds time = waiting_.until(ready, *copy_, what, spec_.name); time > Nanoseconds::zero()) copy_->waited(cause, time);
  }

  Spec spec_;
  std::shared_ptr<Copy<T>> copy_;
  Worker by_;
  std::uint32_t worker_;
  std::shared_ptr<Servers> servers_;
  net::Waiting waiting_;
};

}  // namespace shoal::table
