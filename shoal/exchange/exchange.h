// From gradients produced to gradients reduced: each leaves when autograd has produced it, travels by its unit's way
// and priority, and opens its gate when the mean is there (wait-free backpropagation: Zhang et al., USENIX ATC 2017, 4.1).
//
// An iteration, on every member:
//   begin(weight, told)      once, before or with the first gradient; announces this member's weight in the mean
//   produced(tensor, own)    for each gradient, in any order, in the form that its way takes (flow.h); absent(tensor) for those that this
//                            member does not have
//   result(tensor)           waits for its gate; where the mean lies, or nullptr where no member had a gradient; factors(tensor) likewise
//   give_back(tensor, ...)   where members step parts of parameters (owned_parts.h): sends the own one to all; returned(tensor) waits for theirs
//   commit()                 the step is taken: inputs may be freed, the next iteration may begin
// Gradients are reduced out of place: `data` stays as it was until commit(), so that an interrupted step can be redone.
//
// Threads: all calls from one thread at a time (autograd's, then the optimizer's), but that another may produce the gradients of a begun
// iteration while that one waits for what has been announced; the work happens on the transport's loop.
// Memory: `data` stays valid until commit(). Results stay valid until the next iteration's, or as long as memory() of them is
// held; a gradient that was accumulated in a result's own memory is reduced into other memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shoal/collective/run.h"
#include "shoal/exchange/flow.h"
#include "shoal/exchange/plan.h"
#include "shoal/exchange/roll_call.h"

namespace shoal::exchange {

class Exchange {
 public:
  // The runner outlives the exchange. channel (net::operation_in): this exchange's own in the transport, equal on all members.
  // patience: the longest wait at a gate; then Error{timeout} naming tensor and ranks.
  // Where the job goes on without lost members (net::goes_on()) the exchange does not: from then on all calls throw Error{peer_lost}, and those
  // who are left make another on the same channel.
  struct Begin {
    std::uint64_t iteration = 0;   // the first
    std::uint64_t generation = 0;  // of exchanges on this channel: the same on all members, never the same again
    std::uint64_t before = 0;      // iterations of the run that this one continues
  };
  Exchange(collective::Runner& runner, std::uint16_t channel, ExchangePlan plan, Nanoseconds patience, const Begin& begin);
  Exchange(collective::Runner& runner, std::uint16_t channel, ExchangePlan plan, Nanoseconds patience)
      : Exchange(runner, channel, std::move(plan), patience, Begin{}) {}
  ~Exchange();  // ends what is open

  const ExchangePlan& plan() const;
  // Takes another plan between two iterations (no iteration open). All members must do so at the same iteration.
  void replan(ExchangePlan plan);
  // What the plan in use predicts, from other figures; in all that decides bits it is the same. Between two iterations; each member for itself.
  void predict(ExchangePlan plan);
  double waited() const;            // seconds that the caller has stood at gates so far
  double waited_for_means() const;  // of these, once all members were in the iteration

  // Weights (samples of this member in this iteration) are gathered from all members with the iteration's number and the
  // plan's hash, so that members which run different code are told apart at once: Error{mismatch}.
  // told: for all members to see in this iteration.
  // turn: only the tensors of this turn's units travel (plan.h), the others are neither produced nor absent. The same on all members.
  // Where all weights are 0 nothing travels.
  void begin(double weight, const Told& told = {}, std::uint32_t turn = 0);
  void produced(std::uint32_t tensor, const void* data);
  void produced(std::uint32_t tensor, const factor::Pair& pair);  // by factors only, where a plain gradient is a pair that is all rest
  void produced(std::uint32_t tensor, const Rows& rows);          // by rows only, which take a plain gradient, too
  void produced(std::uint32_t tensor, const Strip& strip);        // of a divided layer only, which takes a plain gradient, too
  void absent(std::uint32_t tensor);     // contributes zeros
  bool by_factors(std::uint32_t tensor) const;
  // The mean of this tensor over members, weighted: sum(w_r g_r)/sum(w_r). nullptr if it was absent everywhere. Of a divided layer: of the
  // own strip; by owners: of the own part.
  const void* result(std::uint32_t tensor);
  // By factors: what the mean is to be multiplied from, until the next iteration's. nullptr if it was absent everywhere.
  const factor::Gathered* factors(std::uint32_t tensor);
  // Of a sparse tensor: the mean's rows, until the next iteration's. nullptr if it was absent everywhere.
  const Rows* rows(std::uint32_t tensor);
  // result(), factors() or rows() would not wait.
  bool arrived(std::uint32_t tensor) const;
  Instant last_arrival() const;          // of the open iteration's means, once all of them have arrived
  // Holds the memory of the last result(tensor), also beyond this exchange and its plan.
  std::shared_ptr<const void> memory(std::uint32_t tensor) const;
  // All members' weights in the open iteration, by rank; waits for them. All 0: every member is out of data (see join).
  std::vector<double> weights();
  std::vector<double> prescales();       // by rank: what gradients are multiplied by before they are added; 1 where weights are equal
  std::uint64_t asked();                 // what any member asks in the open iteration, the same on all; waits like weights()
  std::vector<std::uint64_t> digests();  // all members', by rank; waits like weights()
  Took slowest();                        // iteration before this one, of all members', with the most that any told of its cores; waits like weights()
  // By a way that is owned(), when the own part of the parameter is stepped and before commit(): sends it to all, and puts theirs into `whole`.
  // Both stay until returned() has waited for that, in this iteration or later; the next one's mean of this tensor does, too.
  void give_back(std::uint32_t tensor, const void* part, void* whole);
  void returned(std::uint32_t tensor);
  void settle();                         // waits until all of the open iteration is here: then commit() waits for nothing
  void commit();
  void end();                            // this member begins none any more, and may stay; whoever begins another hears it: Error{mismatch}
  void fail(const Error& why);           // any thread: whoever waits here hears it, and the other members
  std::uint64_t iteration() const;       // number of the open or next iteration
  void continues(std::uint64_t before);  // before the first: a run of as many members that has had so many
  std::uint64_t before() const;
  // What the next iteration needs beside its gradients, of this member, by the first tensor of each unit that keeps any. Read and written
  // between two iterations; valid until replan(), which keeps that of units whose way and tensors stay.
  std::vector<std::pair<std::uint32_t, Kept>> kept();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shoal::exchange
