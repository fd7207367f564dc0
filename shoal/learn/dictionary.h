// A dictionary: atoms of which few together make up a sample, and the sparse codes that say which. Codes are exact functions of sample and atoms (but for
// rounding), the same on all members. Values; threads: any that only read.
//
//   code of x:  the a that minimises  1/2 |x - sum_k a_k d_k|^2 + l1 |a|_1        (by coordinate descent: Friedman et al., Ann. Appl. Stat. 2007)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/data/sparse_rows.h"
#include "shoal/learn/model_folder.h"

namespace shoal::learn {

struct DictionaryForm {
  std::uint32_t atoms = 64;
  double l1 = 1;              // in units of the data
  bool non_negative = false;  // neither atoms nor codes have a number below zero
};

class Dictionary {
 public:
  Dictionary(const DictionaryForm& form, std::uint32_t columns);
  // Of a model of shoal dictionary. Throws Error{invalid_argument} for a folder whose files are none, or do not fit each other.
  explicit Dictionary(const ModelFolder& folder);

  const DictionaryForm& form() const { return form_; }
  std::uint32_t columns() const { return columns_; }

  struct Coded {
    double objective = 0, squared_error = 0;
  };
  // `code` (a number an atom) is where the descent begins, and then the sample's code. Columns that the atoms do not have are 0 in them.
  Coded code(const data::SparseRow& sample, std::span<float> code) const;

  // Atoms that suit given codes better: each in turn to its best place in the ball |d_k| <= 1 (Mairal et al., ICML'09, algorithm 2).
  // squares: sum of a a^T, row after row; products: sum of x a^T, a row for each column. Atoms that no code uses stay.
  void improve(std::span<const double> squares, std::span<const double> products);
  void set_atom(std::uint32_t atom, const data::SparseRow& direction);  // of norm 1; a sample of zeros leaves the atom as it is

  Tensor tensor() const;  // a row for each atom
  void set(const Tensor& tensor);

 private:
  void changed();
  DictionaryForm form_;
  std::uint32_t columns_;
  std::vector<float> values_;  // column after column: a sample has few
  std::vector<double> gram_;   // products of atoms with each other
};

}  // namespace shoal::learn
