// What the tables of one member have in common: the mail, its servers, who asked what. Threads: the transport's loop, but for what says otherwise.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "shoal/table/holdings.h"
#include "shoal/table/job_thread.h"
#include "shoal/table/kept.h"
#include "shoal/table/mail.h"
#include "shoal/table/served.h"
#include "shoal/table/server_bytes.h"
#include "shoal/table/tables.h"

namespace shoal::table {

struct Tables::State : Servers, std::enable_shared_from_this<Tables::State> {
  State(net::Transport& of_transport, const TablesOptions& options);

  net::Rank rank() const override { return transport.rank(); }
  const Workers& all_workers() const override { return workers; }
  const Placement& all_shards() const override { return placement; }
  std::shared_ptr<Answers> ask(const Reader& table, std::vector<std::vector<Message>> messages) override;
  void tell(const Reader& table, const Message& message) override;
  bool is_lost(net::Rank member) const override { return lost[member]; }
  const net::Waiting& patience() const override { return waiting; }
  void check_bears_losses(const Spec& spec) const override;

  void deliver(net::Rank from, Message message);
  net::Failure failure() const;  // of a member that did not say that it leaves
  void say_goodbye();
  void note_departure();         // if this member departs and holds nothing any more
  void note_telemetry();
  void lose(net::Rank member);
  // Where members meet anew (kept.h).
  void stop(const net::Failure& why);
  void take_kept_of(State& before);
  void tell_kept();
  void hear_kept(net::Rank from, const Message& message);
  void begin();                  // all have told
  void make_saves();
  void open(net::Rank from, const Message& message);
  std::unique_ptr<Server> make_server(std::size_t shard, const Spec& spec);
  std::unique_ptr<Order> order_of(const Spec& spec, const std::string& what) const;  // what: of this member's; where one is kept
  LastClocks::Here clocks_here(std::function<void(net::Rank to, Message message)> send);
  void serve(net::Rank from, Message message);
  void note_lost_rows();         // if nobody has some shard any more
  void watch(Answers& answers);
  std::shared_ptr<ServerBytes> moved_of(std::uint64_t table);
  template <class T>
  struct Opening;
  template <class T>
  std::shared_ptr<Copy<T>> open(const Spec& spec);
  template <class T>
  void open(Opening<T>& opening, const Spec& spec);  // on the loop

  net::Transport& transport;
  const bool survives;                                     // members may be lost
  const bool regroups;                                     // then others come in place of them, and all meet anew
  const std::vector<net::Rank> may_serve;                  // in this group
  Placement placement;                                     // until all have met, as this member knows it, or would have it; then as it is (kept.h)
  const Workers workers;
  const net::Waiting waiting;
  std::unique_ptr<Mail> mail;                              // made and destroyed on the loop
  Served served;                                           // on the loop, as the next ones
  Served kept;                                             // of the group before, until all have met
  bool was_there = false;                                  // Told::was_there
  std::map<std::uint64_t, Start> starts;                   // of tables that were opened there
  std::unique_ptr<LastClocks> last_clocks;                 // of workers that are lost
  std::unique_ptr<Holdings> holdings;
  std::map<std::uint64_t, std::shared_ptr<Reader>> read;
  std::map<std::uint64_t, std::shared_ptr<Answers>> opening;
  std::map<std::uint64_t, std::shared_ptr<Answers>> asked;  // by the number of the question
  std::atomic<std::uint64_t> questions{0};
  std::optional<JobThread> own_disk{std::in_place, JobThread::Pace::leisurely}, own_functions{std::in_place};  // until the tables close
  const OnDisk disk, run_functions;                        // or those
  const std::shared_ptr<Functions> functions = std::make_shared<Functions>();
  const std::shared_ptr<ColdFile> cold;                    // of all tables
  const std::shared_ptr<const BytesPool> bodies;           // memory for updates and rows that are sent: members of this host read them in place
  const OrderKept order;
  const std::uint16_t channel;
  const std::size_t most_under_way;                        // of this member, to one shard
  const std::size_t most_copies;
  std::map<std::uint64_t, std::shared_ptr<ServerBytes>> moved;  // by table; on the loop
  std::map<std::size_t, std::shared_ptr<Saves>> saves;     // by shard; on the loop
  std::vector<std::atomic<bool>> left;                     // by rank: asks for nothing more
  std::vector<std::atomic<bool>> lost;                     // by rank, while this member goes on
  Answers leaving;                                         // hears of them
  struct Departure : net::Arrivals {
    std::atomic<bool> over{false};
    void look() { arrivals_.fetch_add(1, std::memory_order_release); }
  } departure;                                             // of this member
  struct Meeting : net::Arrivals {                         // of all members, before anything else
    std::atomic<bool> over;
    std::map<net::Rank, Told> told;
    std::deque<std::pair<net::Rank, Message>> early;       // of those for whom it was over before; they soon wait for this member, so that it is what gates and handovers let be under way
    explicit Meeting(bool is_over) : over(is_over) {}
    void look() { arrivals_.fetch_add(1, std::memory_order_release); }
  } meeting;
  std::atomic<bool> stopped{false};                        // this group has lost a member
  std::atomic<bool> departs{false};
  bool said_goodbye = false;                               // by this member; its thread that ends it

  std::mutex mutex;                                        // guards opened; held while one is opened, so that a second worker waits for it
  std::map<std::uint64_t, std::pair<Spec, std::shared_ptr<Reader>>> opened;

  mutable std::mutex end_mutex;                            // guards end
  net::Failure end;                                        // why nobody can go on: rows are lost, or all are to meet anew
};

template <class T>
struct Tables::State::Opening {
  std::shared_ptr<Copy<T>> copy;
  std::shared_ptr<Answers> answers;
  std::unique_ptr<Order> order;                            // if one is kept
};

}  // namespace shoal::table
