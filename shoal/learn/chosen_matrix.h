// A matrix that is shared in the way that is predicted to be quicker, and in the other one when links or load have changed.
//
// Each member watches what its clocks wait for (exchange/drift.h). When an epoch ends and one of them has seen that this has changed for good, the links are measured
// again, both ways are priced for that epoch's load, and if the other one is quicker by a tenth each member hands its share of the rows over to it. That takes a
// probe and the rows once, of hours of training; each look doubles how long the next change must have lasted. The way that is left keeps its memory, for a
// way back: there is at most one table and one replica.
//
// Threads: one; every call by all members alike, as of any SharedMatrix.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "shoal/core/time.h"
#include "shoal/exchange/drift.h"
#include "shoal/learn/matrix_choice.h"
#include "shoal/learn/shared_matrix.h"

namespace shoal::learn {

template <class T>
class ChosenMatrix final : public SharedMatrix<T> {
 public:
  using typename SharedMatrix<T>::Load;
  using Make = std::function<std::unique_ptr<SharedMatrix<T>>(bool factors)>;
  using Now = std::function<Instant()>;
  // first: what `choice` has answered; by_links. rows: of the matrix.
  ChosenMatrix(net::Transport& transport, std::unique_ptr<MatrixChoice> choice, const MatrixChoice::Answer& first, table::Key rows, std::size_t width, Make make,
               Now now = steady_now);

  void read(std::span<const table::Key> keys, std::span<T> values) override;
  void fetch(std::span<const table::Key> keys, std::span<T> values) override { way().fetch(keys, values); }
  void add(factor::Outer<T> outer) override { way().add(std::move(outer)); }
  void tick() override;
  void barrier() override { way().barrier(); }
  void set(std::span<const table::Key> keys, std::span<const T> values) override { way().set(keys, values); }
  void scale(double factor, table::Key end) override { way().scale(factor, end); }
  void end_epoch(const Load& load) override;
  // Whatever the clocks have waited for. load: what this member does in one.
  void choose_anew(const exchange::MatrixLoad& load);

 private:
  SharedMatrix<T>& way() const { return *ways_[factors_]; }
  void hand_over(bool factors, const std::string& why);

  const net::Rank rank_, size_;
  const std::unique_ptr<MatrixChoice> choice_;
  const table::Key rows_;
  const Make make_;
  const Now now_;
  bool factors_;
  std::unique_ptr<SharedMatrix<T>> ways_[2];     // by factors_; the other one where it was used before
  exchange::Drift drift_;
  bool has_drifted_ = false;
  double waited_ = 0;                            // seconds, in this clock
};

}  // namespace shoal::learn
