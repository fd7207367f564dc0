// What is exchanged, by which way, in what order: a value that is chosen from measured figures, saved with the run
// (plan.json), and replayed with `--plan FILE` to give the same bits whatever the timing.
//
// Words. A *tensor* is one gradient. A *unit* is what one collective operation moves: one large tensor, or several small
// ones packed together, because an operation costs alpha however few bytes it has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shoal/collective/select.h"
#include "shoal/core/dtype.h"
#include "shoal/exchange/choice.h"
#include "shoal/exchange/timeline.h"
#include "shoal/exchange/took.h"
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
  double forward_at = -1;      // seconds from the start of forward to its first use, measured; -1: not known, or nobody can wait there
  // Of a table of which few rows have a gradient (an embedding): elements of a row, and rows that a member had, as measured.
  std::uint64_t width = 0;     // 0: not known as such
  std::uint64_t touched = 0;
  bool sparse = false;         // the gradient is sparse, and its mean must be: it goes by its rows, whatever is cheaper
  double filled = 1;           // of a layer: the share of its pair's numbers that are not zero, as measured
  bool bf16_rows = false;      // those of the layer
  bool divisible = false;      // of a layer's weight: members may each hold a strip of it (strips.h)
  bool takes_data = false;     // of a layer's weight: what the layer is given is data, for whose gradient nobody asks
  bool by_element = false;     // its optimizer treats each element by itself: every member may step a part of it (owned_parts.h)
  double wire_share = 1;       // the share of its bytes that its mean takes on a link (core/packed_words.h), as measured; 1: links do not pack

  factor::Shape layer() const { return {outputs > 0 ? count / outputs : 0, outputs, type, bf16_rows}; }
};

struct Unit {
  std::vector<std::uint32_t> tensors;  // indices into ExchangePlan::tensors, in the order they lie in the packed buffer
  std::string way;                     // "direct", "ring", "factors", ...: way.h
  std::uint32_t slice_bytes = 0;
  std::uint32_t priority = 0;          // on the wire, the smallest first: first_use, or the place in the order of production
  double predicted_seconds = 0;        // on an otherwise idle network, with what is computed for it
  double predicted_exposed = 0;        // of it, what neither backward nor, in order of priority, the next forward pass hides
  std::uint32_t turn = 0;              // in which it travels, of those that divide a round of local steps (choice.h)
};

// Where a unit's gradients lie when they leave, for members of a host that read each other's memory. What is known before the first byte is placed there.
enum class Placement : std::uint8_t {
  in_place,    // it leaves as its operator has written it
  packed,      // copied once, beside its neighbours
  made,        // what leaves is computed from it: rounded, chosen, a strip
  size_first,  // another one in each iteration: rows, factors
};
Placement placement_of(const Unit& unit);
const char* name(Placement placement);  // "in place", "packed", "made", "size first"

bool is_all_reduce(const Unit& unit);  // it travels by one program, which its way names; others choose theirs by the plan's link

struct ExchangePlan {
  std::uint32_t ranks = 1;
  std::uint32_t servers = 0;                         // of them, the last ones: they bring no gradients, and are there to add (SHOAL_ROLE=server)
  std::string choice = "auto";                       // what it was chosen by (choice.h)
  Order order = Order::fifo;                         // priority: the forward pass waits layer by layer
  collective::LinkModel link;
  double forward_seconds = 0, backward_seconds = 0;  // as measured when the plan was made, on the slowest machine; 0: unknown
  double step_seconds = 0;                           // likewise, between the passes: the optimizer's step and what the script does
  bool settled = false;                              // the three are of iterations by this plan, of each one's slowest member: what its units make it compute is in them
  double placing_seconds = 0;                        // of step_seconds, if settled: what means take as they arrive (took.h), while others are on the link
  double processor_seconds = 0;                      // if settled: of an iteration, of the cores that members of any machine share, the most
  double multiply_rate = 0;                          // floating-point operations/s at which a member multiplies rows of others; 0: unknown
  double own_rate = 0;                               // at which backward multiplied its own rows, where whole gradients were measured; 0: unknown
  double operation_seconds = 0;                      // what each unit takes of an iteration, however well it hides: of cores that members share
  std::uint64_t measured_iterations = 3;             // of its run, by the first plan (nn/first_plan.h), before it was chosen: who replays it begins so, too
  std::vector<TensorSpec> tensors;                   // in registration order
  std::vector<Unit> units;                           // in the order their gradients are produced

  std::uint32_t workers() const { return ranks - servers; }
  std::uint64_t bytes_of(const Unit& unit) const;
  std::uint32_t turns() const;                       // of its units
  std::string name_of(const Unit& unit) const;       // "fc1.weight", "conv1.bias and 3 more": in events, reports and errors
  double predicted_exposed() const;                  // sum over units
  double stepping_seconds() const;                   // between the passes: by owners a member steps its parts alone, which the measured ones did not
  double operating_seconds() const { return settled ? 0 : operation_seconds * static_cast<double>(units.size()); }  // settled: in the passes
  // Of an iteration: its passes and what is waited in it. While one member waits others compute, so that where they share cores passes seem short; all of them
  // take what they take of the cores.
  double predicted_seconds() const {
    return std::max(processor_seconds, forward_seconds + backward_seconds + stepping_seconds() + operating_seconds() + predicted_exposed());
  }
  std::uint64_t hash() const;                        // of all that decides bits and matching: equal on all members
};

// By factors every member multiplies for itself. The same plan with gradients in their places, reduced at one owner each.
ExchangePlan without_factors(ExchangePlan plan);
// The same plan with every layer and every parameter whole on all members.
ExchangePlan without_strips(ExchangePlan plan);
// The same units among so many members, some of which were lost: whole gradients by the same ways, where so many can go by them. network: what is
// left of the plan's, nullptr if nothing is known of it.
ExchangePlan for_members(ExchangePlan plan, std::uint32_t ranks, std::shared_ptr<const collective::KnownNetwork> network);
// The same units by the same ways, priced anew on another link.
ExchangePlan priced_on(ExchangePlan plan, const collective::LinkModel& link);
// The same plan, of which iterations have been measured: their passes without what was waited in them, and what they took of shared cores. A plan is chosen
// by passes in which whole gradients are multiplied and sent; by the chosen one they take less, where layers go by factors, or more, where parameters are
// stepped one by one. produced: by tensor, when in backward its gradient is there, from 0 to 1; none: in proportion as before.
ExchangePlan settled(ExchangePlan plan, const Took& took, std::span<const double> produced = {});

std::string to_json(const ExchangePlan& plan);
ExchangePlan plan_from_json(const std::string& text, const std::string& where);  // Error{invalid_argument} naming file and key
// A saved plan fits these tensors and ranks, or Error{mismatch} saying what differs.
void check_fits(const ExchangePlan& plan, const std::vector<TensorSpec>& tensors, std::uint32_t ranks, std::uint32_t servers = 0);

}  // namespace shoal::exchange
