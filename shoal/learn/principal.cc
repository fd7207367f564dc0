#include "shoal/learn/principal.h"

#include <cmath>
#include <numeric>

#include "shoal/learn/order.h"

namespace shoal::learn {
namespace {

constexpr unsigned kSteps = 6;      // more bring directions of nearly equal eigenvalues no nearer to what anybody needs
constexpr double kNothing = 1e-6;   // of a vector's length: what is left of one that the others span

using Vector = std::vector<double>;

double product(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

// v = A^T (A v)
void apply(const data::SparseRows& rows, Vector& v) {
  Vector sum(v.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const data::SparseRow row = rows[i];
    double along = 0;
    for (std::size_t k = 0; k < row.columns.size(); ++k) along += v[row.columns[k]] * row.values[k];
    for (std::size_t k = 0; k < row.columns.size(); ++k) sum[row.columns[k]] += along * row.values[k];
  }
  v = std::move(sum);
}

// Modified Gram-Schmidt.
void make_orthonormal(std::vector<Vector>& vectors) {
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const double before = std::sqrt(product(vectors[i], vectors[i]));
    for (std::size_t j = 0; j < i; ++j) {
      const double along = product(vectors[i], vectors[j]);
      for (std::size_t c = 0; c < vectors[i].size(); ++c) vectors[i][c] -= along * vectors[j][c];
    }
    const double norm = std::sqrt(product(vectors[i], vectors[i]));
    for (double& value : vectors[i]) value = norm > kNothing * before ? value / norm : 0;
  }
}

}  // namespace

std::vector<float> principal_directions(const data::SparseRows& differences, std::uint32_t dimensions, std::uint64_t seed) {
  const std::size_t columns = differences.width;
  std::vector<Vector> directions;
  std::vector<float> drawn(columns);
  for (std::uint32_t k = 0; k < dimensions; ++k) {
    fill_normal(drawn, 1, seed, k, 0);
    directions.emplace_back(drawn.begin(), drawn.end());
  }
  for (unsigned step = 0; step < kSteps; ++step) {
    for (Vector& direction : directions) apply(differences, direction);
    make_orthonormal(directions);
  }
  std::vector<float> values(columns * dimensions);
  for (std::size_t k = 0; k < dimensions; ++k) {
    for (std::size_t c = 0; c < columns; ++c) values[c * dimensions + k] = static_cast<float>(directions[k][c]);
  }
  return values;
}

}  // namespace shoal::learn
