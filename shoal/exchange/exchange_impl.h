// What the two sides of an exchange share: the caller's, exchange.cc, and the loop's, exchange_loop.cc. Internal to both.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/exchange/exchange.h"
#include "shoal/exchange/flow.h"
#include "shoal/exchange/gate.h"
#include "shoal/exchange/programs.h"
#include "shoal/exchange/roll_call.h"

namespace shoal::exchange {

// One unit's passage: how it travels, and the gate behind which its mean lies.
struct Passage {
  explicit Passage(Gate::Version arrived) : gate(arrived), returned(arrived), stepped(arrived) {}

  std::unique_ptr<Flow> flow;
  std::uint64_t bytes = 0;      // of its gradients
  std::string label;
  std::uint32_t event_name = 0;
  std::uint64_t operation = 0;  // its first, in an iteration's
  Gate gate;                    // of all its tensors: they arrive together

  // By owners: behind `returned` lie the others' parts of the parameter.
  Gate returned;
  Gate::Version stepped;        // the last that the caller gave back; its own
  std::uint64_t returning = 0;  // that one's operation

  // This iteration's.
  std::size_t missing = 0;      // tensors neither produced nor absent yet
  Instant produced_at{};
};

// Two threads share this: the caller's and the transport's loop.
//
// Invariants
// 1. The caller alone writes plan, programs, passages (but for what 3 names), unit_of, place_of, iteration, turn, sequence, open and what
//    is accounted; the loop alone writes roll_call, scaling, weights, nobody, ready_units and last_arrival.
// 2. The loop reads the caller's members only in work of the open iteration. All of it was posted after begin() (a post hands over
//    what was written before it), and the caller writes them again only after commit() has seen every gate open: the roll
//    call's, each unit's and presence's are opened by the last piece of that work that reads them.
// 3. A passage belongs to the caller from begin() until its last tensor is accounted and it is posted; then to the loop until
//    its gate opens. `present` goes the same way with start_presence() and presence_gate.
// 4. The caller reads what the loop wrote (results, present_anywhere, the roll call's answers, last_arrival) only behind the gate for it.
// 5. What owners give back outlives its iteration: from give_back() on the loop alone uses the passage's flow for it, and its courier, until `returned` opens for
//    `stepped`. The caller waits for that before it accounts the next gradient of the passage, and before it takes another plan.
// 6. After a failure every call throws before it writes anything of this; the destructor waits
//    until `running` says that the loop refers to nothing here.
struct Exchange::Impl {
  Impl(collective::Runner& runner_in, std::uint16_t channel_in, Nanoseconds patience_in)
      : runner(runner_in), transport(runner_in.transport()), channel(channel_in), patience(patience_in),
        programs(runner_in.size()), roll_call(transport, runner_in.members(), runner_in.rank()) {}

  // --- the caller's side
  void take(ExchangePlan next);
  void begin(double weight, const Told& told, std::uint32_t turn);
  void note(std::uint32_t tensor, bool here);
  void account(std::uint32_t tensor, const Contribution& own);
  std::optional<Mean> mean(std::uint32_t tensor);  // nothing where nobody had a gradient
  std::unique_ptr<Flow> flow_for(const Unit& unit, const ExchangePlan& plan_before, std::vector<std::unique_ptr<Passage>>& passed);
  Gate::Version begun() const { return iteration + (open ? 1 : 0); }  // the version that the latest iteration brings
  const std::vector<Announcement>& announced(const std::string& what);
  void give_back(std::uint32_t tensor, const std::byte* part, std::byte* whole);
  void wait_for_return(const Passage& passage);
  void wait(const Gate& gate, const std::string& what, std::uint32_t event_name) { wait(gate, begun(), what, event_name); }
  void wait(const Gate& gate, Gate::Version version, const std::string& what, std::uint32_t event_name);
  [[noreturn]] void late(const std::string& what);
  void require_no_failure() const;
  void set_failure(const net::Failure& failure);
  void fail(const net::Failure& failure);  // here and, by the transport, for everybody

  // --- the loop's side
  void roll_called(const net::Failure& failure);
  void start(std::size_t unit);
  collective::Run run_of(std::size_t unit) const;
  static void left(const Passage& passage, std::uint64_t iteration, Instant since);
  void start_presence();
  void post(std::function<void()> fn);
  void listen_for_losses();
  void closed() { running.fetch_sub(1, std::memory_order_acq_rel); }

  collective::Runner& runner;
  net::Transport& transport;
  const std::uint16_t channel;
  const Nanoseconds patience;

  // The caller's; the loop reads them (2).
  ExchangePlan plan;
  std::uint64_t plan_hash = 0;
  Programs programs;
  std::vector<std::unique_ptr<Passage>> passages;        // by unit
  std::vector<std::uint32_t> unit_of, place_of;          // by tensor
  std::uint64_t iteration = 0, next_sequence = 0, sequence = 0;
  std::uint64_t iterations = 0;                          // so far, also of the run that this one continues
  std::uint64_t operations = 0;                          // of an iteration: the roll call's, presence's, the units'
  std::uint32_t turn = 0;                                // of the open or latest iteration
  bool open = false;
  std::size_t unaccounted = 0;
  std::vector<bool> accounted;
  double waited = 0, waited_for_means = 0;               // seconds at gates; of these, behind the roll call's

  // Presence: which tensors any member has, so that a gradient absent everywhere stays absent.
  std::vector<std::uint8_t> present, present_anywhere;
  const collective::Verified* presence_program = nullptr;
  Gate presence_gate;

  // The loop's (1).
  RollCall roll_call;
  collective::Scaling scaling;
  std::vector<double> weights;           // by rank; empty: equal
  bool nobody = false;                   // has any data in this iteration
  std::vector<std::size_t> ready_units;  // waiting for the roll call
  Instant last_arrival{};

  // Of the handler that the transport keeps: on the loop, which clears it when this goes.
  const std::shared_ptr<Impl*> listener = std::make_shared<Impl*>(this);

  // Both threads'.
  Gate roll_gate;                        // everybody has said that it is in the iteration
  std::atomic<bool> failed{false};
  std::atomic<int> running{0};           // posted or started, not yet closed
  mutable std::mutex failure_mutex;      // guards failure
  net::Failure failure;
};

}  // namespace shoal::exchange
