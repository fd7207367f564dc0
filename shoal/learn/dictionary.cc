#include "shoal/learn/dictionary.h"

#include <algorithm>
#include <cmath>

#include "shoal/core/error.h"

namespace shoal::learn {

Dictionary::Dictionary(const DictionaryForm& form, std::uint32_t columns)
    : form_(form), columns_(columns), values_(std::size_t{form.atoms} * columns), gram_(std::size_t{form.atoms} * form.atoms) {}

Dictionary::Dictionary(const ModelFolder& folder)
    : Dictionary(folder.understood("dictionary", [&](const Json& config) {
        const DictionaryForm form{config.at("atoms").get<std::uint32_t>(), config.at("l1").get<double>(), config.at("non_negative").get<bool>()};
        Dictionary dictionary(form, config.at("columns").get<std::uint32_t>());
        dictionary.set(tensor_of(folder.model().tensors, "atoms", {form.atoms, dictionary.columns()}));
        return dictionary;
      })) {}

void Dictionary::changed() {
  const std::size_t atoms = form_.atoms;
  std::fill(gram_.begin(), gram_.end(), 0.0);
  for (std::size_t c = 0; c < columns_; ++c) {
    const float* values = &values_[c * atoms];
    for (std::size_t k = 0; k < atoms; ++k) {
      if (values[k] == 0) continue;
      const double value = values[k];
      for (std::size_t j = 0; j < atoms; ++j) gram_[k * atoms + j] += value * values[j];
    }
  }
}

Dictionary::Coded Dictionary::code(const data::SparseRow& sample, std::span<float> code) const {
  constexpr int sweeps = 200;
  constexpr double tolerance = 1e-5;  // of the sample's norm, that a sweep may still change
  const std::size_t atoms = form_.atoms;
  std::vector<double> products(atoms), fitted(atoms);  // d_k x; d_k times what the code makes
  const double norm = data::squared_norm(sample.values);
  for (std::size_t i = 0; i < sample.columns.size(); ++i) {
    if (sample.columns[i] >= columns_) continue;
    const float* values = &values_[std::size_t{sample.columns[i]} * atoms];
    for (std::size_t k = 0; k < atoms; ++k) products[k] += double{sample.values[i]} * values[k];
  }
  const auto add = [&](std::size_t k, double change) {
    const double* row = &gram_[k * atoms];
    for (std::size_t j = 0; j < atoms; ++j) fitted[j] += change * row[j];
  };
  for (std::size_t k = 0; k < atoms; ++k) {
    if (code[k] != 0) add(k, code[k]);
  }
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    double most = 0;
    for (std::size_t k = 0; k < atoms; ++k) {
      const double square = gram_[k * atoms + k];
      if (square == 0) continue;
      const double toward = products[k] - fitted[k] + square * code[k];
      double best = std::max(std::abs(toward) - form_.l1, 0.0) / square;
      if (toward < 0) best = form_.non_negative ? 0 : -best;
      const double before = std::exchange(code[k], static_cast<float>(best)), change = code[k] - before;
      if (change == 0) continue;
      add(k, change);
      most = std::max(most, std::abs(change) * std::sqrt(square));
    }
    if (most <= tolerance * std::sqrt(norm)) break;
  }
  double squared_error = norm, sizes = 0;
  for (std::size_t k = 0; k < atoms; ++k) {
    squared_error += code[k] * (fitted[k] - 2 * products[k]);
    sizes += std::abs(code[k]);
  }
  squared_error = std::max(squared_error, 0.0);
  return {squared_error / 2 + form_.l1 * sizes, squared_error};
}

// d_k += (b_k - D A_k) / A_kk, b_k and A_k the k-th columns; then back into the ball.
void Dictionary::improve(std::span<const double> squares, std::span<const double> products) {
  const std::size_t atoms = form_.atoms;
  std::vector<double> moved(columns_);
  for (std::size_t k = 0; k < atoms; ++k) {
    const double weight = squares[k * atoms + k];
    if (!(weight > 0)) continue;
    const double* others = &squares[k * atoms];  // symmetric
    double norm = 0;
    for (std::size_t c = 0; c < columns_; ++c) {
      const float* values = &values_[c * atoms];
      double made = 0;
      for (std::size_t j = 0; j < atoms; ++j) made += others[j] * values[j];
      moved[c] = values[k] + (products[c * atoms + k] - made) / weight;
      if (form_.non_negative) moved[c] = std::max(moved[c], 0.0);
      norm += moved[c] * moved[c];
    }
    const double shrink = 1 / std::max(std::sqrt(norm), 1.0);
    for (std::size_t c = 0; c < columns_; ++c) values_[c * atoms + k] = static_cast<float>(moved[c] * shrink);
  }
  changed();
}

void Dictionary::set_atom(std::uint32_t atom, const data::SparseRow& direction) {
  double norm = 0;
  const auto taken = [&](float value) { return form_.non_negative ? std::max(value, 0.0f) : value; };
  for (const float value : direction.values) norm += double{taken(value)} * taken(value);
  if (norm == 0) return;
  for (std::size_t c = 0; c < columns_; ++c) values_[c * form_.atoms + atom] = 0;
  for (std::size_t i = 0; i < direction.columns.size(); ++i) {
    values_[std::size_t{direction.columns[i]} * form_.atoms + atom] = static_cast<float>(taken(direction.values[i]) / std::sqrt(norm));
  }
  changed();
}

Tensor Dictionary::tensor() const {
  Tensor tensor{{form_.atoms, columns_}, std::vector<float>(values_.size())};
  for (std::size_t c = 0; c < columns_; ++c) {
    for (std::size_t k = 0; k < form_.atoms; ++k) tensor.values[k * columns_ + c] = values_[c * form_.atoms + k];
  }
  return tensor;
}

void Dictionary::set(const Tensor& tensor) {
  if (tensor.shape != std::vector<std::uint64_t>{form_.atoms, columns_}) throw Error(Code::mismatch, "the atoms have another shape");
  for (std::size_t c = 0; c < columns_; ++c) {
    for (std::size_t k = 0; k < form_.atoms; ++k) values_[c * form_.atoms + k] = tensor.values[k * columns_ + c];
  }
  changed();
}

}  // namespace shoal::learn
