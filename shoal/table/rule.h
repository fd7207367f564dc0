// What a server does with what workers add: it sums, or it takes it for a gradient and steps, with the state of the optimizer beside each
// row. The formulas are those of torch.optim, element by element. Values; threads: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <string>

#include "shoal/table/consistency.h"

namespace shoal::table {

struct Rule {
  enum class Kind : unsigned char { sum, sgd, adagrad, adam, adaptive_revision } kind = Kind::sum;
  double rate = 0;
  double momentum = 0;                // of sgd; beta1 of adam
  double second = 0;                  // beta2 of adam
  double epsilon = 0;                 // of adagrad, adam and adaptive revision
  bool operator==(const Rule&) const = default;

  static Rule sgd(double rate, double momentum = 0) { return {Kind::sgd, rate, momentum, 0, 0}; }
  static Rule adagrad(double rate, double epsilon = 1e-10) { return {Kind::adagrad, rate, 0, 0, epsilon}; }  // Duchi et al., JMLR 2011
  static Rule adam(double rate, double beta1 = 0.9, double beta2 = 0.999, double epsilon = 1e-8) {          // Kingma and Ba, ICLR'15
    return {Kind::adam, rate, beta1, beta2, epsilon};
  }
  // Adagrad for gradients that come late (McMahan and Streeter, "Delay-tolerant algorithms for asynchronous distributed online learning", NIPS'14,
  // algorithm 3): the steps of gradients that came since the one at hand was computed are revised as if that had been known.
  static Rule adaptive_revision(double rate, double epsilon = 1e-10) { return {Kind::adaptive_revision, rate, 0, 0, epsilon}; }
  bool steps() const { return kind != Kind::sum; }
};

// "sum", "sgd:RATE[:MOMENTUM]", "adagrad:RATE[:EPSILON]", "adam:RATE[:BETA1:BETA2:EPSILON]", "adaptive-revision:RATE[:EPSILON]".
// Throws Error{invalid_argument} that lists them.
Rule rule_from(const std::string& text);
std::string name(const Rule& rule);

// Whether a step depends on what had come when its gradient was computed: then a row's state begins with the sum of its gradients.
inline bool revises(const Rule& rule) { return rule.kind == Rule::Kind::adaptive_revision; }

// Whether a table of the one can go on with the other: another rate is the same rule.
bool same_kind(const Rule& one, const Rule& other);

// How far a step with a gradient of this magnitude moves an element at most; with sgd's momentum, also in the steps after. Of a sum, itself.
// Nothing bounds a step that revises others: there it is that of Adagrad.
double reach(const Rule& rule, double gradient);

// Elements of state that a row of `width` needs: zeros at first.
std::size_t state_width(const Rule& rule, std::size_t width);
// One step of a row with gradient[i] / divisor. sums: of the row's gradients, as they were in the values that this one was computed with; empty: as
// they are.
template <class T>
void step(const Rule& rule, std::span<T> row, std::span<T> state, std::span<const T> gradient, double divisor, std::span<const T> sums = {});

// A table's rule, by the clock from which on it holds.
class Rules {
 public:
  explicit Rules(const Rule& first) : from_{{kNever, first}} {}
  const Rule& at(Clock clock) const { return std::prev(from_.upper_bound(std::max(clock, from_.begin()->first)))->second; }
  void set(Clock clock, const Rule& rule) { from_[clock] = rule; }
  const std::map<Clock, Rule>& all() const { return from_; }
  void forget_before(Clock clock) {   // nobody asks for them any more
    while (from_.size() > 1 && std::next(from_.begin())->first <= clock) from_.erase(from_.begin());
  }

 private:
  std::map<Clock, Rule> from_;
};

}  // namespace shoal::table
