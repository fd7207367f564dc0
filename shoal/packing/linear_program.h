// A linear programme that grows by columns, solved by CLP (COIN-OR):
//
//     maximise  sum_j value_j x_j   subject to   sum_j a_ij x_j <= limit_i  for every row i,   x >= 0
//
// Solving again after new columns begins where the last solution stood. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace shoal::packing {

class LinearProgram {
 public:
  explicit LinearProgram(std::span<const double> limits);  // >= 0, so that x = 0 will do
  ~LinearProgram();

  void add(double value, std::span<const std::pair<std::uint32_t, double>> column);  // (row, a)
  void solve();                          // throws Error{internal} if CLP finds no optimum
  double value() const;
  std::vector<double> amounts() const;   // x, by column
  std::vector<double> prices() const;    // of the dual, by row; >= 0

 private:
  struct Model;
  std::unique_ptr<Model> model_;
};

}  // namespace shoal::packing
