// Trees packed as Blink packs them (Wang et al., "Blink: Fast and Generic Collectives for Distributed ML", MLSys 2020, section 3): by
// multiplicative weights, then as few of them as carry almost as much. What the paper does, beside pack.h, which does better: column
// generation meets the bound in tens of rounds where this takes thousands, and is the reference of this in the tests.
//
// Candidates. Garg and Koenemann (FOCS 1998) for packings, m arcs of rates c_a, times_a how often a tree takes an arc:
//
//     delta = (1 + eps) ((1 + eps) m)^(-1/eps),   y_a = delta / c_a
//     repeat:  A = the cheapest tree under y;  stop if cost(A) >= 1
//              f = min over a in A of c_a / times_a;   x_A += f;   y_a *= 1 + eps f times_a / c_a
//     x /= max over a of load_a / c_a
//
// comes within 1 - 2 eps of the best in O(m log m / eps^2) rounds. Two liberties: log(y_a c_a) is kept, because delta underflows for a
// small eps; and it stops as soon as the prices themselves prove 1 - eps (the bound of pack.h), mostly well before cost(A) reaches 1.
//
// Few. Of at most 200 candidates, the heaviest, each is taken or not, as one unit, the rate of the slowest arc (an NVLink):
//
//     maximise  sum_A n_A   subject to   sum_A n_A times_a unit <= c_a,   n_A in {0, 1}
//
// by branch and bound, the bound being the candidates' prices on what capacity is left. Where that loses more than `loss` of the best rates that the
// candidates can have, the rule is relaxed step by step: n_A any whole number, then units of a half, a third, ... an eighth; and where none
// of them will do those best rates (a basic solution: at most a tree an arc), of which the lightest are dropped as long as no more than
// `loss` goes with them. Pure functions.
#pragma once

#include <cstdint>

#include "shoal/packing/pack.h"

namespace shoal::packing {

struct Blink {
  double eps = 0.05;        // 0.005 to 0.25
  double loss = 0.05;       // of the candidates' best rates, for fewer trees
};

// The candidates with their rates x: hundreds of trees, some of hardly any rate. The bound is that of the last prices or better ones before.
// all_reduce (many-to-many: up and down one tree where both directions of every arc have one rate), broadcast, reduce: what has one origin. Others
// throw Error{unsupported}; Error{invalid_argument}: eps out of range.
Packing pack_by_weights(const Network& network, Demand demand, Node root = 0, double eps = 0.05);

// Both steps: rate >= (1 - loss) (1 - eps) of the best there is.
Packing pack_blink(const Network& network, Demand demand, Node root = 0, const Blink& blink = {});

}  // namespace shoal::packing
