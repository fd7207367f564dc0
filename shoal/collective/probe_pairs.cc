// Every pair's latency and rate. Rounds, one after another with a barrier between: first each ordered pair alone, then
// N-1 rounds in which every member r serves r+k and asks r-k. In a round the asking side measures with its own clock:
//
//     asks "8 bytes" -> 8 bytes       several times; half of the median is the latency
//     asks "2 MB"    -> 2 MB          once more with 16 MB if that was quick; the rest of its time is the rate
//     asks "0"                        the server's round is over
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "shoal/collective/noise.h"
#include "shoal/collective/probe.h"
#include "shoal/collective/rehearsal.h"

namespace shoal::collective {
namespace {

constexpr std::uint32_t kAsk = 0, kReply = 1;                    // the streams of a round
constexpr std::size_t kPings = 9;
constexpr std::uint64_t kPingBytes = 8, kFewBytes = 2 << 20, kManyBytes = 16 << 20;
constexpr double kLongTransfer = 0.02;                             // seconds

struct Round {
  std::uint32_t from, to;
  bool together;
};         // together: `from` and `to` of this very member

class PairProbe : public std::enable_shared_from_this<PairProbe> {
 public:
  PairProbe(Runner& runner, std::uint64_t operation, Instant deadline, PairsProbed done)
      : rehearsal_(runner, operation, deadline, "the probe of the pairs"), done_(std::move(done)) {
    const std::uint32_t size = rehearsal_.size(), rank = rehearsal_.rank();
    matrix_.size = size;
    matrix_.figures.resize(std::size_t{size} * size);
    for (std::uint32_t from = 0; from < size; ++from) {
      for (std::uint32_t to = 0; to < size; ++to) {
        if (from != to) rounds_.push_back({from, to, false});
      }
    }
    for (std::uint32_t k = 1; k < size; ++k) rounds_.push_back({(rank + size - k) % size, (rank + k) % size, true});
  }

  void next_round() {
    if (round_ == rounds_.size()) return share();
    barrier_.assign(1, 0);
    rehearsal_.all_reduce("gather", ReduceOp::sum, barrier_, [self = shared_from_this()](const net::Failure& why, double) {
      why ? self->finish(why) : self->begin_round();
    });
  }

 private:
  void begin_round() {
    const Round& round = rounds_[round_];
    const std::uint32_t rank = rehearsal_.rank();
    operation_ = rehearsal_.next_operation();
    const bool asks = round.together || round.to == rank, serves = round.together || round.from == rank;
    sides_ = asks + serves;
    if (sides_ == 0) return end_round();
    timer_ = rehearsal_.expire(
        [self = shared_from_this()](const net::Failure& why) { self->rehearsal_.transport().close(self->operation_, why); });
    if (asks) {
      server_ = round.from;
      pings_.clear();
      ask(kPingBytes);
    }
    if (serves) {
      client_ = round.to;
      fill_with_noise(served_, kManyBytes);
      serve();
    }
  }

  void side_done() {
    if (--sides_ > 0) return;
    rehearsal_.transport().cancel(timer_);
    rehearsal_.transport().close(operation_, nullptr);
    end_round();
  }
  void end_round() {
    ++round_;
    next_round();
  }

  // --- the side that asks
  void ask(std::uint64_t bytes) {
    wanted_ = bytes;
    reply_.resize(std::max<std::size_t>(reply_.size(), bytes));
    net::Transport& transport = rehearsal_.transport();
    const auto self = shared_from_this();
    asked_ = transport.now();
    transport.send(rehearsal_.member(server_), {operation_, kAsk}, net::kUrgent, std::as_bytes(std::span(&wanted_, 1)),
                   [self, bytes](const net::Failure& why) {
                     if (why) return self->finish(why);
                     if (bytes == 0) self->side_done();
                   });
    if (bytes == 0) return;
    transport.receive(
        rehearsal_.member(server_), {operation_, kReply}, {}, std::span(reply_).first(bytes), [self](const net::Failure& why) {
          why ? self->finish(why) : self->replied(Seconds(self->rehearsal_.transport().now() - self->asked_).count());
        });
  }

  void replied(double seconds) {
    PairFigures& figures = matrix_.figures[std::size_t{server_} * matrix_.size + rehearsal_.rank()];
    if (wanted_ == kPingBytes) {
      pings_.push_back(seconds);
      if (pings_.size() < kPings) return ask(kPingBytes);
      std::nth_element(pings_.begin(), pings_.begin() + kPings / 2, pings_.end());
      if (!rounds_[round_].together) figures.latency = pings_[kPings / 2] / 2;
      return ask(kFewBytes);
    }
    if (wanted_ == kFewBytes && seconds < kLongTransfer) return ask(kManyBytes);
    double& rate = rounds_[round_].together ? figures.rate_together : figures.rate_alone;
    rate = static_cast<double>(wanted_) / std::max(seconds - pings_[kPings / 2], seconds / 2);
    ask(0);
  }

  // --- the side that serves
  void serve() {
    rehearsal_.transport().receive(
        rehearsal_.member(client_), {operation_, kAsk}, net::kUrgent, std::as_writable_bytes(std::span(&asked_for_, 1)),
        [self = shared_from_this()](const net::Failure& why) { why ? self->finish(why) : self->answer(); });
  }
  void answer() {
    if (asked_for_ == 0) return side_done();
    if (asked_for_ > kManyBytes)
      return finish(std::make_shared<const Error>(Code::mismatch, "a member asks for too much", "the probe of the pairs"));
    rehearsal_.transport().send(rehearsal_.member(client_), {operation_, kReply}, {}, std::span(served_).first(asked_for_),
                                [self = shared_from_this()](const net::Failure& why) {
                                  if (why) self->finish(why);
                                });
    serve();
  }

  // --- the end
  void share() {  // each member has its own column; zeros elsewhere
    shared_.clear();
    for (const PairFigures& pair : matrix_.figures)
      shared_.insert(shared_.end(), {pair.latency, pair.rate_alone, pair.rate_together});
    rehearsal_.all_reduce("direct", ReduceOp::sum, shared_, [self = shared_from_this()](const net::Failure& why, double) {
      if (why) return self->finish(why);
      for (std::size_t i = 0; i < self->matrix_.figures.size(); ++i) {
        self->matrix_.figures[i] = {self->shared_[3 * i], self->shared_[3 * i + 1], self->shared_[3 * i + 2]};
      }
      self->finish(nullptr);
    });
  }
  void finish(const net::Failure& why) {
    if (!done_) return;  // the other streams of a round that failed
    if (why) rehearsal_.transport().cancel(timer_);
    std::exchange(done_, nullptr)(why, matrix_);
  }

  Rehearsal rehearsal_;
  PairsProbed done_;
  PairMatrix matrix_;
  std::vector<Round> rounds_;
  std::size_t round_ = 0;
  std::uint64_t operation_ = 0, timer_ = 0;
  int sides_ = 0;                       // of this round that still go on
  std::uint32_t server_ = 0, client_ = 0;
  Instant asked_;
  std::uint64_t wanted_ = 0, asked_for_ = 0;
  std::vector<double> pings_, barrier_, shared_;
  std::vector<std::byte> reply_, served_;
};

}  // namespace

void probe_pairs(Runner& runner, std::uint64_t operation, Instant deadline, PairsProbed done) {
  std::make_shared<PairProbe>(runner, operation, deadline, std::move(done))->next_round();
}

PairMatrix probe_pairs(net::Transport& transport, std::uint64_t operation, Instant deadline) {
  return rehearse<PairMatrix>(
      transport, deadline, [=](Runner& runner, PairsProbed done) { probe_pairs(runner, operation, deadline, std::move(done)); });
}

}  // namespace shoal::collective
