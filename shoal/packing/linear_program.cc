#include "shoal/packing/linear_program.h"

#include <fmt/format.h>

#include <ClpSimplex.hpp>
#include <algorithm>

#include "shoal/core/error.h"

namespace shoal::packing {

struct LinearProgram::Model {
  ClpSimplex clp;
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
  std::vector<int> rows;
  std::vector<double> entries;
  for (const auto& [row, entry] : column) rows.push_back(static_cast<int>(row)), entries.push_back(entry);
  model_->clp.addColumn(static_cast<int>(rows.size()), rows.data(), entries.data(), 0, COIN_DBL_MAX, value);
}

void LinearProgram::solve() {
  ClpSimplex& clp = model_->clp;
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
