#include "shoal/learn/sparse_coding.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"
#include "shoal/core/time.h"
#include "shoal/learn/memory.h"
#include "shoal/learn/order.h"
#include "shoal/learn/rows.h"

namespace shoal::learn {
namespace {

constexpr std::uint32_t kUnused = 0x6469'0000;  // site of random numbers (core/seed.h)

const SparseCodingOptions& checked(const SparseCodingOptions& options, const LabelledRows& rows) {
  const auto refuse = [](const char* flag, const std::string& what) { throw Error(Code::invalid_argument, what, flag); };
  const double atoms = options.form.atoms;
  if (atoms < 1 || atoms > 1 << 16) refuse("atoms", std::to_string(options.form.atoms) + " is not between 1 and 65536");
  if (!(options.form.l1 >= 0) || !std::isfinite(options.form.l1)) refuse("l1", "must not be below zero");
  if (options.batch < 1) refuse("batch", "must be at least 1");
  need_memory(atoms * (rows.columns * (sizeof(float) + 3.0 * sizeof(double)) + sizeof(float) * static_cast<double>(rows.own.size())),
              std::to_string(options.form.atoms) + " atoms of " + std::to_string(rows.columns) + " columns");
  return options;
}

}  // namespace

SparseCoding::SparseCoding(net::Transport& transport, LabelledRows rows, const SparseCodingOptions& options, const table::TablesOptions& tables)
    : options_(checked(options, rows)), rows_(std::move(rows)), atoms_(options.form.atoms), tables_(transport, tables), worker_(tables_.worker()),
      codes_sums_(worker_.open<double>({.name = "sums-of-codes", .width = atoms_, .consistency = table::Bsp{}, .initial = {}})),
      all_codes_(worker_.open<float>({.name = "codes", .width = atoms_, .consistency = table::Bsp{}, .initial = {}})), sums_(worker_, "sums", 3),
      dictionary_(options.form, rows_.columns), codes_(rows_.own.size() * atoms_), touched_(rows_.columns),
      known_sums_((rows_.columns + atoms_) * atoms_) {
  begin_atoms();
}

// Different samples of those that all members know, then random directions.
void SparseCoding::begin_atoms() {
  const auto order = shuffled(static_cast<std::uint32_t>(rows_.first.size()), options_.seed, 0, 0);
  Tensor atoms{{atoms_, rows_.columns}, std::vector<float>(atoms_ * rows_.columns)};
  for (std::uint32_t k = 0; k < atoms_; ++k) {
    const auto atom = std::span(atoms.values).subspan(std::size_t{k} * rows_.columns, rows_.columns);
    fill_normal(atom, 1 / std::sqrt(static_cast<double>(rows_.columns)), options_.seed, k, 0);
    if (options_.form.non_negative) std::transform(atom.begin(), atom.end(), atom.begin(), [](float value) { return std::abs(value); });
    const double norm = std::max(std::sqrt(data::squared_norm(atom)), 1.0);
    for (float& value : atom) value = static_cast<float>(value / norm);
  }
  dictionary_.set(atoms);
  for (std::uint32_t k = 0; k < std::min(atoms_, order.size()); ++k) dictionary_.set_atom(k, rows_.first[order[k]]);
}

// --- an epoch

Epoch SparseCoding::learn(const std::function<void(double part)>& progressed) {
  const Instant begin = steady_now();
  waited_ = 0;
  const auto dealt = deal(rows_, options_.batch, options_.seed, epochs_ + 1);
  double objective = 0;
  for (std::size_t clock = 0; clock < dealt.size(); ++clock) {
    improve_atoms();
    if (clock == 0 && epochs_ > 0) replace_unused();
    objective += code_anew(dealt[clock]);
    if (!std::isfinite(objective)) throw Error(Code::invalid_argument, "numbers grew without bound in epoch " + std::to_string(epochs_ + 1), "data", "scale it");
    progressed(static_cast<double>(clock + 1) / static_cast<double>(dealt.size()));
  }
  sum_up();
  improve_atoms();
  ++epochs_;
  double held_out = 0;
  std::vector<float> code(atoms_);
  for (std::size_t i = 0; i < rows_.own_held_out.size(); ++i) {
    std::fill(code.begin(), code.end(), 0.0f);
    held_out += dictionary_.code(rows_.own_held_out[i], code).objective;
  }
  const auto used = static_cast<double>(codes_.size()) - static_cast<double>(std::count(codes_.begin(), codes_.end(), 0.0f));
  const Instant summing = steady_now();
  const auto sums = sums_.sum({objective, used, held_out});
  const Instant end = steady_now();
  Epoch epoch{.number = epochs_, .figures = {{"objective", sums[0] / rows_.count}, {"codes not zero", sums[1] / rows_.count / static_cast<double>(atoms_)}},
              .samples = rows_.count, .seconds = seconds_between(begin, end), .waited = waited_ + seconds_between(summing, end)};
  if (rows_.held_out > 0) epoch.figures.emplace_back("held-out objective", sums[2] / rows_.held_out);
  return epoch;
}

void SparseCoding::improve_atoms() {
  const Instant begin = steady_now();
  read_rows(codes_sums_, {0, rows_.columns + atoms_}, known_sums_);
  waited_ += seconds_between(begin, steady_now());
  const std::span<const double> sums(known_sums_);
  dictionary_.improve(sums.subspan(rows_.columns * atoms_), sums.first(rows_.columns * atoms_));
}

// An atom that no code uses becomes a sample that all members know.
void SparseCoding::replace_unused() {
  for (std::uint32_t k = 0; k < atoms_; ++k) {
    if (known_sums_[(rows_.columns + k) * atoms_ + k] > 0) continue;
    dictionary_.set_atom(k, rows_.first[static_cast<std::size_t>(uniform(options_.seed, epochs_, k, kUnused) * static_cast<double>(rows_.first.size()))]);
  }
}

// The sum of the objective over these rows.
double SparseCoding::code_anew(std::span<const std::uint32_t> numbers) {
  double objective = 0;
  std::vector<float> before(numbers.size() * atoms_);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto kept = code(numbers[i]);
    std::copy(kept.begin(), kept.end(), before.begin() + static_cast<std::ptrdiff_t>(i * atoms_));
    objective += dictionary_.code(rows_.own[numbers[i]], kept).objective;
  }
  add_changes(numbers, before);
  const Instant added = steady_now();
  codes_sums_.tick();
  waited_ += seconds_between(added, steady_now());
  return objective;
}

// What the codes of these rows have in A and B, less what they had before.
void SparseCoding::add_changes(std::span<const std::uint32_t> numbers, std::span<const float> before) {
  if (numbers.empty()) return;
  touched_.collect(rows_.own, numbers);
  std::vector<table::Key> keys(touched_.keys().begin(), touched_.keys().end() - 1);
  const std::size_t squares = keys.size();
  for (std::size_t k = 0; k < atoms_; ++k) keys.push_back(rows_.columns + k);
  std::vector<double> changes(keys.size() * atoms_), change(atoms_);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto now = code(numbers[i]);
    const float* was = &before[i * atoms_];
    for (std::size_t k = 0; k < atoms_; ++k) change[k] = double{now[k]} - was[k];
    const data::SparseRow row = rows_.own[numbers[i]];
    for (std::size_t c = 0; c < row.columns.size(); ++c) {
      double* into = &changes[touched_.place(row.columns[c]) * atoms_];
      for (std::size_t k = 0; k < atoms_; ++k) into[k] += row.values[c] * change[k];
    }
    for (std::size_t j = 0; j < atoms_; ++j) {
      if (now[j] == 0 && was[j] == 0) continue;
      double* into = &changes[(squares + j) * atoms_];
      for (std::size_t k = 0; k < atoms_; ++k) into[k] += double{now[j]} * now[k] - double{was[j]} * was[k];
    }
  }
  codes_sums_.add(keys, changes);
}

// A and B anew, so that they are functions of the codes alone: to the bit the same in a run that goes on from kept ones.
void SparseCoding::sum_up() {
  const Instant begin = steady_now();
  codes_sums_.barrier();
  const KeyRange share{rows_.member, rows_.columns + atoms_, rows_.members};
  assign_rows(codes_sums_, share, std::vector<double>(share.size() * atoms_));
  codes_sums_.barrier();
  std::vector<std::uint32_t> numbers;
  const std::vector<float> nothing(kRowsAtOnce * atoms_);
  for (std::uint32_t from = 0; from < rows_.own.size(); from += kRowsAtOnce) {
    numbers.resize(std::min<std::size_t>(kRowsAtOnce, rows_.own.size() - from));
    std::iota(numbers.begin(), numbers.end(), from);
    add_changes(numbers, nothing);
  }
  codes_sums_.barrier();
  waited_ += seconds_between(begin, steady_now());
}

// --- models

Tensors SparseCoding::model() {
  const std::vector<table::Key> own(rows_.numbers.begin(), rows_.numbers.end());
  assign_rows(all_codes_, own, codes_);
  all_codes_.barrier();
  Tensors model;
  if (rows_.member == 0) {
    model.emplace("atoms", dictionary_.tensor());
    model.emplace("codes", tensor_from(all_codes_, {0, rows_.count}));
  }
  all_codes_.barrier();  // nobody leaves whose rows rank 0 has not read
  return model;
}

// What an atom may be, for those that are given: none that was learnt is changed, but for rounding none is longer than 1.
void SparseCoding::bring_into_ball(Tensor& atoms) const {
  constexpr double rounding = 1e-4;
  for (std::uint32_t k = 0; k < atoms_; ++k) {
    const auto atom = std::span(atoms.values).subspan(std::size_t{k} * rows_.columns, rows_.columns);
    if (options_.form.non_negative) std::transform(atom.begin(), atom.end(), atom.begin(), [](float value) { return std::max(value, 0.0f); });
    const double norm = std::sqrt(data::squared_norm(atom));
    if (norm <= 1 + rounding) continue;
    for (float& value : atom) value = static_cast<float>(value / norm);
  }
}

void SparseCoding::begin_with(const Tensors& first) {
  const KeyRange behind{rows_.count, table::Key{rows_.count} + rows_.columns};  // the atoms' numbers, as many in a row as a code has
  Tensor atoms{{atoms_, rows_.columns}, std::vector<float>(atoms_ * rows_.columns)};
  if (rows_.member == 0) {
    atoms = tensor_of(first, "atoms", atoms.shape);
    bring_into_ball(atoms);
    assign_rows(all_codes_, behind, atoms.values);
  }
  all_codes_.barrier();
  read_rows(all_codes_, behind, atoms.values);
  dictionary_.set(atoms);
}

unsigned SparseCoding::restore(unsigned epochs, const Tensors& model) {
  epochs_ = static_cast<unsigned>(sums_.sum({rows_.member == 0 ? static_cast<double>(epochs) : 0, 0, 0})[0]);
  if (epochs_ == 0) return 0;
  if (rows_.member == 0) assign_rows(all_codes_, KeyRange{0, rows_.count}, tensor_of(model, "codes", {rows_.count, atoms_}).values);
  begin_with(model);
  const std::vector<table::Key> own(rows_.numbers.begin(), rows_.numbers.end());
  read_rows(all_codes_, own, codes_);
  sum_up();
  return epochs_;
}

}  // namespace shoal::learn
