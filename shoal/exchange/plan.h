// What is exchanged, by which way, in what order: a value that is chosen from measured figures, saved with the run
// (plan.json), and replayed with `--plan FILE` to give the same bits whatever the timing.
//
// Words. A *tensor* is one gradient. A *unit* is what one collective operation moves: one large tensor, or several small
// ones packed together, because an operation costs alpha however few bytes it has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/collective/select.h"
#include "shoal/core/dtype.h"
#include "shoal/factor/factor.h"

namespace shoal::exchange {

struct TensorSpec {
  std::string name;            // "fc1.weight"
  DType type = DType::f32;
  std::uint64_t count = 0;     // elements
  std::uint32_t first_use = 0; // position in forward order: 0 is needed first in the next iteration
  double backward_at = -1;     // seconds from the start of backward to this gradient, measured; -1: not yet
  // Of the weight of a fully connected layer: a sum of `rows` outer products a member, as measured. 0: not known as such.
  std::uint64_t rows = 0;
  std::uint64_t outputs = 0;   // the weight is outputs x count / outputs

  factor::Shape layer() const { return {outputs > 0 ? count / outputs : 0, outputs, type}; }
};

// The way of a layer's weight whose sufficient factors travel in place of its gradient; all others are all-reduce builders.
inline constexpr const char* kByFactors = "factors";

struct Unit {
  std::vector<std::uint32_t> tensors;  // indices into ExchangePlan::tensors, in the order they lie in the packed buffer
  std::string way;                     // a collective all-reduce builder: "direct", "ring", ...; or kByFactors: one tensor alone
  std::uint32_t slice_bytes = 0;
  std::uint32_t priority = 0;          // the smallest first_use of its tensors
  double predicted_seconds = 0;        // on an otherwise idle network
  double predicted_exposed = 0;        // of it, what backward does not hide
};

struct ExchangePlan {
  std::uint32_t ranks = 1;
  collective::LinkModel link;
  double forward_seconds = 0, backward_seconds = 0;  // as measured when the plan was made; 0: unknown
  double multiply_rate = 0;                          // floating-point operations/s of one member's matrix products; 0: unknown
  std::vector<TensorSpec> tensors;                   // in registration order
  std::vector<Unit> units;                           // in the order their gradients are produced

  std::uint64_t bytes_of(const Unit& unit) const;
  std::string name_of(const Unit& unit) const;       // "fc1.weight", "conv1.bias and 3 more": in events, reports and errors
  double predicted_exposed() const;                  // sum over units
  std::uint64_t hash() const;                        // of all that decides bits and matching: equal on all members
};

// How a layer's factors travel: each part by the builder that its size suggests, the same in the price and on the wire.
struct Transfer {
  std::string way;
  double bytes = 0;  // of all members together
};
struct FactorTransfers {
  Transfer heads, rows;  // all-gathers, one after the other
  Transfer rest;         // an all-reduce, only of what no pair explains
};
FactorTransfers factor_transfers(const TensorSpec& tensor, std::uint32_t ranks, const collective::LinkModel& link);

// Chooses. Wait-free backpropagation in FIFO order of production (research/sync.md 7.4, second row): exposed time of unit l is
// what of B_{>=l} + C_{<=l} sticks out behind backward. `way`: "auto" or one builder for all. Deterministic in its arguments.
ExchangePlan make_plan(std::vector<TensorSpec> tensors, std::uint32_t ranks, const collective::LinkModel& link,
                       double forward_seconds = 0, double backward_seconds = 0, const std::string& way = "auto", double multiply_rate = 0);
// The same units by the same ways, priced anew on another link.
ExchangePlan priced_on(ExchangePlan plan, const collective::LinkModel& link);

std::string to_json(const ExchangePlan& plan);
ExchangePlan plan_from_json(const std::string& text, const std::string& where);  // Error{invalid_argument} naming file and key
// A saved plan fits these tensors and ranks, or Error{mismatch} saying what differs.
void check_fits(const ExchangePlan& plan, const std::vector<TensorSpec>& tensors, std::uint32_t ranks);

}  // namespace shoal::exchange
