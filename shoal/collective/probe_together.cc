#include "shoal/collective/probe_together.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "shoal/collective/noise.h"
#include "shoal/collective/rehearsal.h"

namespace shoal::collective {
namespace {

constexpr double kRound = 0.4, kRoundTrips = 20, kWarm = 0.3;  // seconds, or as many round trips; the share that is not counted
constexpr double kPiece = 0.004, kQueue = 0.02;  // seconds of the link: a piece, and what waits at it
constexpr std::uint64_t kLeastPiece = 2048, kMostPiece = 128 << 10, kMostAhead = 4 << 20;

class TogetherProbe : public std::enable_shared_from_this<TogetherProbe> {
 public:
  TogetherProbe(Runner& runner, std::vector<topo::Flow> flows, const PairMatrix& alone, std::uint64_t operation,
                Instant deadline, ProbedTogether done)
      : rehearsal_(runner, operation, deadline, "the probe of flows together"),
        done_(std::move(done)),
        flows_(flows.size()),
        rates_(flows.size()) {
    std::vector<std::uint32_t> sends(alone.size), takes(alone.size);
    for (const topo::Flow& flow : flows) {
      ++sends[flow.from];
      ++takes[flow.to];
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const PairFigures& pair = alone.at(flows[i].from, flows[i].to);
      const double share = pair.rate_alone / std::max(sends[flows[i].from], takes[flows[i].to]);
      Side& side = flows_[i];
      side.flow = flows[i];
      side.piece = std::clamp(static_cast<std::uint64_t>(share * kPiece), kLeastPiece, kMostPiece);
      const double ahead = std::min(share * (2 * pair.latency + kQueue), static_cast<double>(kMostAhead));
      side.ahead = std::max<std::uint64_t>(4, static_cast<std::uint64_t>(std::ceil(ahead / static_cast<double>(side.piece))));
      round_ = std::max(round_, kRoundTrips * 2 * pair.latency);
      fill_with_noise(memory_, std::max<std::size_t>(memory_.size(), side.piece));
    }
  }

  void begin() {
    barrier_.assign(1, 0);
    rehearsal_.all_reduce("gather", ReduceOp::sum, barrier_, [self = shared_from_this()](const net::Failure& why, double) {
      why ? self->finish(why) : self->flow();
    });
  }

 private:
  struct Side {  // what this member does for a flow
    topo::Flow flow;
    std::uint64_t piece = 0, ahead = 0;  // bytes; how many pieces are asked for at a time
    std::uint64_t asked_for = 0, wanted = 0;  // the sender's last order; the receiver's, 0 once it has enough
    std::uint64_t under_way = 0, counted = 0;
    Instant first, last;  // of the pieces that count
  };

  void flow() {
    operation_ = rehearsal_.next_operation();
    begin_ = rehearsal_.transport().now();
    timer_ = rehearsal_.expire(
        [self = shared_from_this()](const net::Failure& why) { self->rehearsal_.transport().close(self->operation_, why); });
    ++open_;  // until all have begun
    for (std::uint32_t i = 0; i < flows_.size() && done_; ++i) {
      if (flows_[i].flow.from == rehearsal_.rank()) {
        ++open_;
        serve(i);
      }
      if (flows_[i].flow.to == rehearsal_.rank()) {
        ++open_;
        flows_[i].wanted = flows_[i].piece;
        for (std::uint64_t k = 0; k < flows_[i].ahead; ++k) ask(i);
      }
    }
    side_done();
  }
  void side_done() {
    if (--open_ > 0 || !done_) return;
    rehearsal_.transport().cancel(timer_);
    rehearsal_.transport().close(operation_, nullptr);
    share();
  }

  // --- the side that receives
  net::Tag asks(std::uint32_t i) const { return {operation_, 2 * i}; }
  net::Tag pieces(std::uint32_t i) const { return {operation_, 2 * i + 1}; }

  void order(std::uint32_t i, net::Done sent) {
    rehearsal_.transport().send(rehearsal_.member(flows_[i].flow.from), asks(i), net::kUrgent,
                                std::as_bytes(std::span(&flows_[i].wanted, 1)), std::move(sent));
  }
  void ask(std::uint32_t i) {
    Side& side = flows_[i];
    ++side.under_way;
    order(i, [self = shared_from_this()](const net::Failure& why) {
      if (why) self->finish(why);
    });
    // All that comes goes into the same memory: nobody reads it.
    rehearsal_.transport().receive(
        rehearsal_.member(side.flow.from), pieces(i), {}, std::span(memory_).first(side.piece),
        [self = shared_from_this(), i](const net::Failure& why) { why ? self->finish(why) : self->arrived(i); });
  }
  void arrived(std::uint32_t i) {
    Side& side = flows_[i];
    const Instant now = rehearsal_.transport().now();
    const double elapsed = Seconds(now - begin_).count();
    --side.under_way;
    if (side.first == Instant{} && elapsed >= kWarm * round_) {
      side.first = now;
    } else if (side.first != Instant{} && (elapsed < round_ || side.counted == 0)) {
      side.counted += side.piece;
      side.last = now;
    }
    // A flow so slow that nothing counts yet goes on until something does.
    if (elapsed < round_ || (side.counted == 0 && side.under_way == 0)) return ask(i);
    if (side.under_way > 0) return;
    rates_[i] = static_cast<double>(side.counted) / std::max(Seconds(side.last - side.first).count(), 1e-9);
    side.wanted = 0;
    order(i, [self = shared_from_this()](const net::Failure& why) { why ? self->finish(why) : self->side_done(); });
  }

  // --- the side that sends
  void serve(std::uint32_t i) {
    rehearsal_.transport().receive(
        rehearsal_.member(flows_[i].flow.to), asks(i), net::kUrgent, std::as_writable_bytes(std::span(&flows_[i].asked_for, 1)),
        [self = shared_from_this(), i](const net::Failure& why) { why ? self->finish(why) : self->answer(i); });
  }
  void answer(std::uint32_t i) {
    const std::uint64_t bytes = flows_[i].asked_for;
    if (bytes == 0) return side_done();
    if (bytes != flows_[i].piece)
      return finish(
          std::make_shared<const Error>(Code::mismatch, "members know different figures", "the probe of flows together"));
    rehearsal_.transport().send(rehearsal_.member(flows_[i].flow.to), pieces(i), {}, std::span(memory_).first(bytes),
                                [self = shared_from_this()](const net::Failure& why) {
                                  if (why) self->finish(why);
                                });
    serve(i);
  }

  // --- the end
  void share() {  // each member has the rates of what it received; zeros elsewhere
    rehearsal_.all_reduce("direct", ReduceOp::sum, rates_,
                          [self = shared_from_this()](const net::Failure& why, double) { self->finish(why); });
  }
  void finish(const net::Failure& why) {
    if (!done_) return;  // the other streams of a round that failed
    if (why) rehearsal_.transport().cancel(timer_);
    std::exchange(done_, nullptr)(why, rates_);
  }

  Rehearsal rehearsal_;
  ProbedTogether done_;
  std::vector<Side> flows_;
  std::vector<double> rates_, barrier_;
  std::vector<std::byte> memory_;
  double round_ = kRound;  // seconds
  std::uint64_t operation_ = 0, timer_ = 0;
  std::uint32_t open_ = 0;  // sides of this member that still go on
  Instant begin_;
};

}  // namespace

void probe_together(Runner& runner, const std::vector<topo::Flow>& flows, const PairMatrix& alone, std::uint64_t operation,
                    Instant deadline, ProbedTogether done) {
  std::make_shared<TogetherProbe>(runner, flows, alone, operation, deadline, std::move(done))->begin();
}

std::vector<double> probe_together(net::Transport& transport, const std::vector<topo::Flow>& flows, const PairMatrix& alone,
                                   std::uint64_t operation, Instant deadline) {
  return rehearse<std::vector<double>>(transport, deadline, [=](Runner& runner, ProbedTogether done) {
    probe_together(runner, flows, alone, operation, deadline, std::move(done));
  });
}

}  // namespace shoal::collective
