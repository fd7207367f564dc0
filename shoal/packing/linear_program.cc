#include "shoal/packing/linear_program.h"

#include <fmt/format.h>

#include <ClpSimplex.hpp>
#include <algorithm>

#include "shoal/core/error.h"

namespace shoal::packing {

struct LinearProgram::Model {
  ClpSimplex clp;
  // Columns since the last solve(): CLP copies all that it has whenever some join.
  std::vector<double> values, entries;
  std::vector<CoinBigIndex> starts{0};
  std::vector<int> rows;
};

LinearProgram::LinearProgram(std::span<const double> limits) : model_(std::make_unique<Model>()) {
  ClpSimplex& clp = model_->clp;
  clp.setLogLevel(0);
  clp.resize(static_cast<int>(limits.size()), 0);
  clp.setOptimizationDirection(-1);
  for (std::size_t row = 0; row < limits.size(); ++row) clp.setRowBounds(static_cast<int>(row), -COIN_DBL_MAX, limits[row]);
}
LinearProgram::~LinearProgram() = default;

void LinearProgram::add(double value, std::span<const std::pair<std::uint32_t, double>> column) {
  model_->values.push_back(value);
  for (const auto& [row, entry] : column) model_->rows.push_back(static_cast<int>(row)), model_->entries.push_back(entry);
  model_->starts.push_back(static_cast<CoinBigIndex>(model_->rows.size()));
}

void LinearProgram::solve() {
  auto& [clp, values, entries, starts, rows] = *model_;
  clp.addColumns(static_cast<int>(values.size()), nullptr, nullptr, values.data(), starts.data(), rows.data(), entries.data());  // from 0 up
  values.clear();
  entries.clear();
  rows.clear();
  starts.resize(1);
  clp.primal(1);
  if (!clp.isProvenOptimal()) throw Error(Code::internal, fmt::format("CLP found no optimum (status {})", clp.status()), "packing");
}

double LinearProgram::value() const { return model_->clp.objectiveValue(); }

std::vector<double> LinearProgram::amounts() const {
  const double* x = model_->clp.primalColumnSolution();
  return {x, x + model_->clp.numberColumns()};
}

std::vector<double> LinearProgram::prices() const {
  const double* y = model_->clp.dualRowSolution();
  std::vector<double> prices(y, y + model_->clp.numberRows());
  for (double& price : prices) price = std::max(0.0, price);
  return prices;
}

}  // namespace shoal::packing
