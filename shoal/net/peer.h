// Everything one member keeps about one other: two connections, the streams in both directions, the credit between
// them and what the peer last said of itself. Between members of one host that have mapped each other's memory, streams and
// credit go through that (memory_connection.h), and the bulk connection is idle. Everything on the loop, except stats() and
// activity().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shoal/core/event.h"
#include "shoal/net/body.h"
#include "shoal/net/connection.h"
#include "shoal/net/credit.h"
#include "shoal/net/job.h"
#include "shoal/net/loop.h"
#include "shoal/net/memory_connection.h"
#include "shoal/net/packer.h"
#include "shoal/net/send_queue.h"
#include "shoal/net/train_counter.h"

namespace shoal::net {

class Peer;

// What a peer needs of its transport, which owns it.
class PeerOwner {
 public:
  virtual Loop& loop() = 0;
  virtual CreditPolicy& credit(bool link) = 0;    // of peers with a link between, or without
  virtual LinkBytes& link_bytes() = 0;            // of all peers
  virtual Packer& packer() = 0;                   // of frames to all peers
  virtual double sending_rate() const = 0;        // to all peers, bytes/s
  virtual Chore& grants() = 0;                    // collects and sends grants of all peers
  virtual bool is_closed(std::uint64_t operation) const = 0;
  virtual std::uint64_t next_arrival() = 0;
  virtual void heard(Rank peer) = 0;
  virtual void said_goodbye(Rank peer) = 0;
  virtual void told(Rank peer, wire::Kind kind, const wire::Notice& notice) = 0;
  virtual void connection_lost(Rank peer, wire::Channel channel, std::error_code why) = 0;
  virtual void broke_rules(Rank peer, const std::string& how) = 0;
  virtual MemoryConnections& memory_connections() = 0;
  virtual const Arena* arena() const = 0;         // in which members of this host may read; nullptr: none
  virtual void cannot_share(Rank peer, const std::string& why) = 0;
  virtual void sharing_changed() = 0;

 protected:
  ~PeerOwner() = default;
};

class Peer final : public ConnectionUser, public Chore {
 public:
  Peer(PeerOwner& owner, Rank rank);
  ~Peer() override;

  void adopt(wire::Channel channel, Socket socket);
  bool has(wire::Channel channel) const { return (channel == wire::Channel::control ? control_ : bulk_) != nullptr; }
  bool connected() const { return control_ && bulk_; }
  Rank rank() const { return rank_; }
  void share();                                    // offers memory to a member of this host
  bool sharing_settled() const { return !sharing_.begun || (sharing_.attached && sharing_.answer); }

  // given, body: of give() and take(), or empty.
  void send(Tag tag, Priority priority, std::span<const std::byte> bytes, Bytes given, Done done);
  void receive(Tag tag, Priority priority, std::span<std::byte> into, std::shared_ptr<Body> body, Done done);
  void close_operation(std::uint64_t operation, const Failure& why);
  void fail_all(const Failure& why);               // every waiting handler
  void fail_receives(const Failure& why);
  void lose(const Failure& why);                   // the job goes on without it: nothing more is taken from it

  void tell(wire::Kind kind, const std::string& payload); // on the control connection
  void heartbeat(Instant now, const std::string& activity);
  void add_grant(const Granted& granted);
  std::uint32_t stalled_heartbeats();              // of its connections the longest (connection.h)
  void ask_for_credit();                           // once a heartbeat, for streams that are stuck
  void pump() { owner_.loop().chore(*this); }
  void say_goodbye();                              // once what is queued has been written
  bool drained();                                  // all that was sent is with the peer's kernel
  void close();

  double sending_rate() const { return busy_since_ == Instant{} ? 0 : send_rate_; }  // bytes/s, of the bulk connection
  LinkStats stats() const;
  std::string activity() const;
  Nanoseconds shortest_round_trip();               // without queues; 0: not known
  bool gone = false;                               // said goodbye
  bool bulk_ended = false;

 private:
  struct SendItem {
    std::span<const std::byte> bytes;
    Priority priority;
    std::uint64_t arrival;
    Bytes given;
    Done done;
  };
  struct SendStream {
    Tag tag;
    std::uint64_t sent = 0, limit = 0;   // bytes framed; offset up to which the receiver granted
    std::deque<SendItem> items;
    Order order;                         // of items.front()
    bool asked = false;                  // told the receiver where it waits
    enum class Where { idle, queued, blocked } where = Where::idle;
  };
  struct ReceiveItem {
    std::span<std::byte> into;           // what is left to fill
    std::shared_ptr<Body> body;          // that this is a part of
    Done done;
  };
  struct Chunk {                         // bytes that nobody has asked for yet
    std::unique_ptr<std::byte[]> own;
    const std::byte* bytes;              // its own, or where they stay
    Loan loan;
    std::size_t begin, end, size;
    bool eager, urgent;
  };
  struct ReceiveStream {
    Demand demand;
    std::deque<ReceiveItem> items;
    std::deque<Chunk> unexpected;        // empty if items is not
  };
  struct Incoming {                      // the data frame being read on one channel
    wire::Header header;
    bool dropped = false;                // of a closed operation
    bool into_chunk = false;             // the last plan was the unexpected chunk
    std::size_t left = 0;
    Instant began{};
  };

  // ConnectionUser
  bool next_frame(wire::Channel channel, OutFrame& frame) override;
  void frame_written(wire::Channel channel, OutFrame& frame) override;
  bool data_begins(wire::Channel channel, const wire::Header& header) override;
  std::size_t plan(wire::Channel channel, std::span<iovec> into) override;
  void took(wire::Channel channel, std::size_t bytes) override;
  bool keep(std::span<const std::byte> payload, Loan loan) override;
  bool message(wire::Channel channel, const wire::Header& header, std::span<const std::byte> payload) override;
  void wire_bytes(std::size_t sent, std::size_t received) override;
  void ended(wire::Channel channel, std::error_code why) override;
  void run_chore() override;

  // sending (peer_send.cc)
  bool next_urgent(OutFrame& frame);
  bool next_bulk(OutFrame& frame);
  OutFrame cut(SendStream& stream, std::size_t bytes, bool eager, SendQueue<SendStream>& queue);
  bool packs() const;
  SendQueue<SendStream>& queue_of(const SendStream& stream) {
    return stream.order.priority.cls == Class::urgent ? urgent_queue_ : bulk_queue_;
  }
  void enqueue(SendStream& stream);
  void dequeue(SendStream& stream);
  void unblock(SendStream& stream);
  bool on_consumed(std::uint64_t total);  // false: it broke the rules
  void on_credit(const wire::Credit& credit);
  void measure_sent(Instant now, std::size_t bytes);
  bool make_credit_frame(OutFrame& frame);

  // receiving (peer_receive.cc)
  ReceiveStream& incoming_stream(Tag tag);
  void fill(ReceiveStream& stream, std::size_t bytes);
  void take_unexpected(ReceiveStream& stream);
  void consumed_eager(std::size_t bytes);
  void on_request(const wire::Header& header);
  void on_dry(const wire::Header& header);

  // memory that both map (peer_share.cc); false: what came cannot be read, or comes twice
  bool on_mailbox(std::span<const std::byte> payload);
  bool on_segment(std::span<const std::byte> payload);
  bool on_attached(std::span<const std::byte> payload);
  void sharing_changed();
  CreditPolicy& credit() { return owner_.credit(!memory_); }
  void on_heartbeat(const wire::Heartbeat& heartbeat);
  template <typename Streams>
  void sweep(Streams& streams, std::size_t& limit);
  static bool idle(const SendStream& s) { return s.where == SendStream::Where::idle && s.limit <= s.sent; }  // its receiver counts on what it granted
  static bool idle(const ReceiveStream& s) { return s.items.empty() && s.unexpected.empty(); }

  static constexpr std::size_t kStreams = 4096;   // streams remembered before idle ones are forgotten

  PeerOwner& owner_;
  const Rank rank_;
  std::shared_ptr<Connection> control_, bulk_;
  struct Sharing {                                // what the two sides have said; both must attach the other's memory
    bool begun = false;
    std::optional<Mailbox> mailbox;
    std::optional<OwnSegment> own;                // until the connection has it
    std::optional<OtherSegment> other;
    std::optional<bool> attached, answer;         // theirs by this side, ours by theirs
    bool lends = false;                           // our arena by theirs
  } sharing_;
  std::unique_ptr<MemoryConnection> memory_;      // streams go through it

  std::map<Tag, SendStream> out_;
  std::size_t out_limit_ = kStreams, in_limit_ = kStreams;
  SendQueue<SendStream> urgent_queue_, bulk_queue_;
  std::vector<SendStream*> blocked_;              // without credit
  EagerBudget budget_;
  std::deque<OutFrame> outbox_;                   // control messages; a few
  bool leaving_ = false, said_goodbye_ = false, lost_ = false;
  std::deque<Tag> to_tell_;                       // streams that wait for credit, or for bytes, to tell on the bulk connection
  static constexpr std::size_t kUrgentAtOnce = 2 * kUrgentLimit;  // bytes on the control connection, in one call and with the kernel
  static constexpr std::size_t kLocalAtOnce = 512 * 1024;         // the same of bulk over loopback, at least
  std::size_t frame_bytes_ = 128 * 1024;
  std::size_t least_at_once_ = 0;                 // kLocalAtOnce over loopback
  Instant busy_since_{};
  std::size_t busy_bytes_ = 0;
  double send_rate_ = 0;
  bool runs_on_ = false;                          // frames of the bulk connection have had no pause between them

  std::map<Tag, ReceiveStream> in_;
  std::array<Incoming, 3> incoming_;              // by channel
  std::vector<wire::Grant> grants_;               // to tell
  // Eager bytes of the peer that found a receive; of them told in credit, and carried by data, which may yet wait behind
  // other data.
  std::uint64_t consumed_ = 0, consumed_told_ = 0, consumed_carried_ = 0;
  bool tell_consumed_ = false;
  std::uint64_t unexpected_urgent_ = 0, unexpected_bulk_ = 0, unexpected_given_ = 0;
  std::uint64_t& unexpected_like(const Chunk& chunk) { return chunk.loan ? unexpected_given_ : chunk.urgent ? unexpected_urgent_ : unexpected_bulk_; }
  std::vector<std::byte> drain_;                  // where dropped bytes go

  std::int64_t echo_ns_ = 0;
  Instant echo_at_{};

  mutable std::mutex told_mutex_;                 // guards activity_
  std::string activity_;
  std::atomic<std::uint64_t> sent_{0}, saved_{0}, lent_{0}, received_{0}, wire_sent_{0}, wire_received_{0};
  // Of the bulk connection. Loops are late by some milliseconds.
  TrainCounter trains_out_{std::chrono::milliseconds(20)}, trains_in_{std::chrono::milliseconds(20)};
  std::atomic<double> round_trip_s_{0};
  std::atomic<bool> shares_{false};
};

}  // namespace shoal::net
