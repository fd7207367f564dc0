// A snapshot of a table at a clock C: every increment with a timestamp below C and none of a later one, and the state of the table's rule. Each
// server writes its own part when the slowest worker has completed C, while rows go on changing; nobody waits for that but who calls wait().
// Under async, and where a rule steps outside bsp, clocks are not told apart: it is what had arrived at one moment of each server.
//
// Threads: the worker's that asked for it. Lifetime: the Tables outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shoal/table/consistency.h"
#include "shoal/table/placement.h"
#include "shoal/table/reader.h"
#include "shoal/table/snapshot_folder.h"
#include "shoal/table/workers.h"

namespace shoal::table {

// What members answer to a question of several messages, one answer each: that it is done, rows, or why not.
class Answers final : public Reader {
 public:
  // owed: by rank, how many answers that member will send.
  explicit Answers(std::vector<std::size_t> owed);
  void take(net::Rank from, Message message) override;
  // That member is lost: it answers no more.
  void loses(net::Rank member) override;
  bool complete() const { return arrivals() == expected_; }
  // All when it is complete.
  bool lost() const { return lost_; }                      // one who owed answers
  const std::string& refused() const { return refused_; }  // of who refused last; empty: nobody
  const std::vector<Message>& messages() const { return messages_; }  // in the order in which they came

 private:
  std::vector<std::size_t> owed_;                          // on the loop
  const std::uint64_t expected_;
  bool lost_ = false;
  std::string refused_;
  std::vector<Message> messages_;
};

// All servers of the tables of one member, for who asks them all the same.
class Servers {
 public:
  virtual ~Servers() = default;
  virtual net::Rank rank() const = 0;                                 // this member
  virtual const Workers& all_workers() const = 0;
  virtual const Placement& all_shards() const = 0;
  // Those that answer for the shards of this table: by shard what; numbers the questions.
  virtual std::shared_ptr<Answers> ask(const Reader& table, std::vector<std::vector<Message>> messages) = 0;
  virtual void tell(const Reader& table, const Message& message) = 0;  // all of them the same
  virtual bool is_lost(net::Rank member) const = 0;
  virtual const net::Waiting& patience() const = 0;
  virtual void check_bears_losses(const Spec& spec) const = 0;        // as this run wants it. Throws Error{unsupported}
};

class Snapshot {
 public:
  // path: a folder, of this table's snapshots alone. Throws Error{invalid_argument} if it holds another table's, is "", or this process writes a
  // snapshot there at the moment. Two members must not write into one folder at a time.
  Snapshot(std::shared_ptr<Servers> servers, std::shared_ptr<const Reader> table, const Spec& spec, Clock clock, const std::string& path);
  Clock clock() const { return cut_.clock; }
  bool is_written() const;            // or has failed: wait() returns at once
  // Until all parts are there; then it is the snapshot at `path`, and the one before is gone. Returns its clock. Throws Error{io, peer_lost,
  // timeout}; the snapshot that was there before stays. One that nobody waits for is none.
  Clock wait();

 private:
  Message message(Kind kind, const std::string& id) const;

  std::shared_ptr<Servers> servers_;
  std::shared_ptr<const Reader> table_;
  std::filesystem::path folder_;
  std::unique_ptr<const FolderClaim> claim_;  // until it is over
  Cut cut_;
  std::string before_;                // the id of the snapshot that is there
  std::shared_ptr<Answers> answers_;
  bool over_ = false;                 // wait() has returned
};

}  // namespace shoal::table
