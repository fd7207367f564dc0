// Goal: codes and atoms are what their problems' conditions of optimality say, whatever the number of members; a run that goes on has the bits of one that was not
// interrupted.
#include "shoal/learn/sparse_coding.h"

#include <gmock/gmock.h>

#include <cmath>

#include "shoal/core/seed.h"
#include "tests/learn/members.h"

namespace shoal::learn {
namespace {

constexpr std::uint32_t kColumns = 8, kAtoms = 5;

// Sums of two of six directions, with a little beside it.
LabelledRows mixed(std::uint32_t member, std::uint32_t members, std::uint32_t count = 150) {
  LabelledRows rows;
  rows.member = member;
  rows.members = members;
  rows.columns = kColumns;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::vector<std::uint32_t> columns;
    std::vector<float> values;
    for (std::uint32_t c = 0; c < kColumns; ++c) {
      const double made = 5 * uniform(7, i % 6, c, 0) + 3 * uniform(7, i / 6 % 5, c, 0) + 0.1 * uniform(7, i, c, 1);
      if (c > 1 && uniform(7, i, c, 2) < 0.2) continue;
      columns.push_back(c);
      values.push_back(static_cast<float>(made));
    }
    const data::SparseRow row{0, columns, values};
    if (i % 6 == 5) {
      if (data::Share{member, members}.holds(rows.held_out++)) rows.own_held_out.append(row);
      continue;
    }
    rows.first.append(row);
    if (data::Share{member, members}.holds(rows.count)) {
      rows.own.append(row);
      rows.numbers.push_back(rows.count);
    }
    ++rows.count;
  }
  rows.own.width = rows.own_held_out.width = rows.first.width = kColumns;
  return rows;
}

Begin coding(const SparseCodingOptions& options) {
  return [=](net::Transport& transport) { return std::make_unique<SparseCoding>(transport, mixed(transport.rank(), transport.size()), options); };
}

SparseCodingOptions options_for(bool non_negative, double l1 = 0.5) { return {.form = {kAtoms, l1, non_negative}, .batch = 40}; }

double product(const Tensor& atoms, std::size_t k, const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t c = 0; c < kColumns; ++c) sum += atoms.values[k * kColumns + c] * x[c];
  return sum;
}

// x - D a, or x where there is no code.
std::vector<double> rest(const data::SparseRow& row, const Tensor& atoms, std::span<const float> code = {}) {
  std::vector<double> rest(kColumns);
  for (std::size_t i = 0; i < row.columns.size(); ++i) rest[row.columns[i]] = row.values[i];
  for (std::size_t k = 0; k < code.size(); ++k) {
    for (std::size_t c = 0; c < kColumns; ++c) rest[c] -= double{code[k]} * atoms.values[k * kColumns + c];
  }
  return rest;
}

// Where a number of the code is not zero, its atom's product with what is left is l1 with its sign; elsewhere it is no larger.
TEST(SparseCoding, a_code_fulfils_its_conditions_of_optimality) {
  for (const bool non_negative : {false, true}) {
    const Learnt learnt = learnt_by(1, 2, coding(options_for(non_negative)));
    Dictionary dictionary(options_for(non_negative).form, kColumns);
    const Tensor& atoms = learnt.model.at("atoms");
    dictionary.set(atoms);
    const LabelledRows rows = mixed(0, 1);
    for (std::size_t i = 0; i < rows.own_held_out.size(); ++i) {
      std::vector<float> code(kAtoms);
      const auto coded = dictionary.code(rows.own_held_out[i], code);
      const auto left = rest(rows.own_held_out[i], atoms, code);
      double squares = 0, sizes = 0;
      for (const double value : left) squares += value * value;
      for (std::size_t k = 0; k < kAtoms; ++k) {
        const double slope = product(atoms, k, left);
        sizes += std::abs(code[k]);
        if (code[k] != 0) {
          EXPECT_NEAR(slope, code[k] > 0 ? 0.5 : -0.5, 2e-3);
        } else {
          EXPECT_LE(non_negative ? slope : std::abs(slope), 0.5 + 2e-3);
        }
        EXPECT_FALSE(non_negative && code[k] < 0);
      }
      EXPECT_NEAR(coded.squared_error, squares, 1e-4);
      EXPECT_NEAR(coded.objective, squares / 2 + 0.5 * sizes, 1e-4);
    }
  }
}

TEST(SparseCoding, atoms_stay_in_the_ball_and_the_objective_falls) {
  for (const bool non_negative : {false, true}) {
    const Learnt learnt = learnt_by(2, 12, coding(options_for(non_negative)));
    const Tensor& atoms = learnt.model.at("atoms");
    for (std::size_t k = 0; k < kAtoms; ++k) {
      double square = 0;
      for (std::size_t c = 0; c < kColumns; ++c) {
        square += double{atoms.values[k * kColumns + c]} * atoms.values[k * kColumns + c];
        EXPECT_FALSE(non_negative && atoms.values[k * kColumns + c] < 0);
      }
      EXPECT_LE(square, 1 + 1e-6);
    }
    for (std::size_t epoch = 2; epoch < learnt.epochs.size(); ++epoch) {
      EXPECT_LE(learnt.epochs[epoch].figures[0].second, learnt.epochs[epoch - 1].figures[0].second * (1 + 1e-6)) << epoch;
    }
  }
}

// With one batch of all rows the atoms after an epoch are one round over the codes' sums: no atom alone can do better. Oracle: small moves of the last atom.
TEST(SparseCoding, the_last_atom_is_the_best_for_its_codes) {
  auto options = options_for(false);
  options.batch = 1000;
  const Learnt learnt = learnt_by(3, 3, coding(options));
  const LabelledRows rows = mixed(0, 1);
  const Tensor& codes = learnt.model.at("codes");
  const auto error = [&](const Tensor& atoms) {
    double sum = 0;
    for (std::size_t i = 0; i < rows.own.size(); ++i) {
      for (const double value : rest(rows.own[i], atoms, std::span(codes.values).subspan(i * kAtoms, kAtoms))) sum += value * value;
    }
    return sum;
  };
  const Tensor& atoms = learnt.model.at("atoms");
  const double least = error(atoms);
  for (std::size_t c = 0; c < kColumns; ++c) {
    for (const float nudge : {-0.02f, 0.02f}) {
      Tensor moved = atoms;
      float* atom = &moved.values[(kAtoms - 1) * kColumns];
      atom[c] += nudge;
      const double norm = std::max(1.0, std::sqrt(data::squared_norm({atom, kColumns})));
      for (std::size_t j = 0; j < kColumns; ++j) atom[j] = static_cast<float>(atom[j] / norm);
      EXPECT_GE(error(moved), least - 1e-3);
    }
  }
}

TEST(SparseCoding, any_number_of_members_takes_the_same_steps_but_for_rounding) {
  const Learnt alone = learnt_by(1, 3, coding(options_for(false)));
  for (const net::Rank members : {2u, 5u}) {
    const Learnt learnt = learnt_by(members, 3, coding(options_for(false)));
    const auto &one = alone.model.at("atoms").values, &other = learnt.model.at("atoms").values;
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], other[i], 1e-3);
    EXPECT_NEAR(alone.figure("held-out objective"), learnt.figure("held-out objective"), 1e-3 * alone.figure("held-out objective"));
  }
}

TEST(SparseCoding, two_runs_have_the_same_bits_and_so_has_one_that_goes_on) {
  for (const net::Rank members : {1u, 3u}) {
    const auto begin = coding(options_for(true));
    const Learnt whole = learnt_by(members, 5, begin), half = learnt_by(members, 2, begin);
    expect_same_bits(learnt_by(members, 5, begin).model, whole.model);
    expect_same_bits(learnt_by(members, 5, begin, 2, half.model).model, whole.model);
  }
}

// An epoch of one batch codes all samples by the atoms it begins with.
TEST(SparseCoding, it_begins_with_given_atoms) {
  auto options = options_for(false);
  options.batch = 1 << 20;
  const Tensors other{{"atoms", learnt_by(1, 3, coding(options)).model.at("atoms")}};
  Dictionary dictionary(options.form, kColumns);
  dictionary.set(other.at("atoms"));
  double objective = 0;
  const LabelledRows rows = mixed(0, 1);
  std::vector<float> code(options.form.atoms);
  for (std::size_t i = 0; i < rows.own.size(); ++i) {
    std::fill(code.begin(), code.end(), 0.0f);
    objective += dictionary.code(rows.own[i], code).objective / rows.count;
  }
  for (const net::Rank members : {1u, 3u}) {
    EXPECT_NEAR(learnt_by(members, 1, coding(options), 0, other).figure("objective"), objective, 1e-6 * objective);
  }
}

TEST(SparseCoding, what_cannot_be_is_refused_in_one_line) {
  auto jobs = net::join_all(1);
  const auto refusal = [&](const SparseCodingOptions& options) -> std::string {
    try {
      coding(options)(jobs[0]->transport());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal({.form = {.atoms = 0}}), "atoms: 0 is not between 1 and 65536");
  EXPECT_EQ(refusal({.form = {.l1 = -1}}), "l1: must not be below zero");
  EXPECT_EQ(refusal({.batch = 0}), "batch: must be at least 1");
}

}  // namespace
}  // namespace shoal::learn
