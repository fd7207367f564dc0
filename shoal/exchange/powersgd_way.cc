// "powersgd:RANK": a tensor as an m x n matrix travels as two thin ones whose product is near it (Vogels, Karimireddy and Jaggi, "PowerSGD",
// NeurIPS 2019, algorithms 1 and 2). One round of subspace iteration, begun where the last one ended:
//
//     D = gradient + residual          m x n, of each member
//     P = mean of D Q                  m x r, all-reduced; then its columns are made orthonormal
//     Q' = mean of Dᵀ P                n x r, all-reduced; the next iteration's Q
//     mean = P Q'ᵀ
//     residual = D - P (own Dᵀ P)ᵀ     what this member could not say
//
// P and Q lie column by column. A column of Q that has died (no gradient lies along it) begins anew from random numbers. Lossy.
#include <algorithm>
#include <cmath>
#include <utility>

#include "shoal/core/finite.h"
#include "shoal/core/seed.h"
#include "shoal/exchange/packed_flow.h"
#include "shoal/exchange/programs.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;


struct Shape {
  std::uint64_t rows = 0, columns = 0, rank = 0;  // m, n, r
  std::uint64_t p() const { return rows * rank; }
  std::uint64_t q() const { return columns * rank; }
};

Shape shape_of(const TensorSpec& tensor, std::uint64_t rank) {
  const std::uint64_t rows = tensor.outputs;
  return {rows, rows > 0 ? tensor.count / rows : 0, rank};
}

// In 16 sums, so that the compiler may add several at once; which element goes into which is fixed.
float dot(const float* a, const float* b, std::uint64_t count) {
  constexpr std::uint64_t kSums = 16;
  float sums[kSums] = {};
  std::uint64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::uint64_t s = 0; s < kSums; ++s) sums[s] += a[i + s] * b[i + s];
  }
  for (; i < count; ++i) sums[i % kSums] += a[i] * b[i];
  float sum = 0;
  for (const float s : sums) sum += s;
  return sum;
}

void add_multiple(float* into, float factor, const float* from, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) into[i] += factor * from[i];
}

// Gram and Schmidt's, modified. A column that lies in the span of those before it becomes zero.
void make_orthonormal(std::vector<float>& columns, std::uint64_t length, std::uint64_t rank) {
  for (std::uint64_t c = 0; c < rank; ++c) {
    float* const column = &columns[c * length];
    const float before = std::sqrt(dot(column, column, length));
    for (std::uint64_t other = 0; other < c; ++other) {
      add_multiple(column, -dot(column, &columns[other * length], length), &columns[other * length], length);
    }
    const float norm = std::sqrt(dot(column, column, length));
    const bool lives = norm > 1e-6F * before && std::isnormal(norm);
    for (std::uint64_t i = 0; i < length; ++i) column[i] = lives ? column[i] / norm : (std::isfinite(norm) ? 0 : norm);
  }
}

class PowerSgdFlow final : public PackedFlow {
 public:
  PowerSgdFlow(const Road& road, Shape shape)
      : PackedFlow(road),
        shape_(shape),
        p_program_(road.programs.cheapest(Collective::all_reduce, shape.p() * sizeof(float), road.plan.link)),
        q_program_(road.programs.cheapest(Collective::all_reduce, shape.q() * sizeof(float), road.plan.link)),
        residual_(count()),
        q_(shape.q()),
        p_own_(shape.p()),
        p_(shape.p()),
        q_own_(shape.q()),
        q_mean_(shape.q()) {
    for (std::uint64_t c = 0; c < shape_.rank; ++c) begin_anew(c);
  }

  std::uint64_t operations() const override { return 2; }
  void cancel(const net::Failure& why) override { ended_ = why; }

  void start(const Departure& departure, net::Done done) override {
    all_reduce(p_program_, p_own_, p_, departure.run, [this, run = departure.run, done = std::move(done)](const net::Failure& why) mutable {
      if (why) return done(why);
      make_orthonormal(p_, shape_.rows, shape_.rank);
      std::fill(q_own_.begin(), q_own_.end(), 0.0F);
      ++run.operation;
      multiply_from(has_any() ? 0 : shape_.rows, run, std::move(done));
    });
  }

  std::vector<Kept> kept() override {
    settle();
    return {{"residual", DType::f32, residual_.size(), reinterpret_cast<std::byte*>(residual_.data())},
            {"q", DType::f32, q_.size(), reinterpret_cast<std::byte*>(q_.data())}};
  }

 private:
  // Who has no gradient sends nothing, and keeps what was left over.
  void seal() override {
    settle();
    owes_ = true;
    std::fill(p_own_.begin(), p_own_.end(), 0.0F);
    if (!has_any()) return;
    add_multiple(residual_.data(), 1, reinterpret_cast<const float*>(input()), count());  // D
    for (std::uint64_t i = 0; i < shape_.rows; ++i) {
      const float* const row = &residual_[i * shape_.columns];
      for (std::uint64_t c = 0; c < shape_.rank; ++c) p_own_[c * shape_.rows + i] = dot(row, &q_[c * shape_.columns], shape_.columns);
    }
  }

  // The transposed product, from this row on, and then its sum over members. It cannot be done beforehand, so the loop does it, some rows at a time: others'
  // bytes move, and heartbeats leave, between them.
  void multiply_from(std::uint64_t row, const collective::Run& run, net::Done done) {
    if (ended_) return done(ended_);
    if (row == shape_.rows) return all_reduce(q_program_, q_own_, q_mean_, run, std::move(done));
    const auto end = std::min(shape_.rows, row + std::max<std::uint64_t>(1, kAtOnce / (shape_.columns * shape_.rank)));
    for (std::uint64_t i = row; i < end; ++i) {
      for (std::uint64_t c = 0; c < shape_.rank; ++c) {
        add_multiple(&q_own_[c * shape_.columns], p_[c * shape_.rows + i], &residual_[i * shape_.columns], shape_.columns);
      }
    }
    courier().runner().transport().post([this, end, run, done = std::move(done)]() mutable { multiply_from(end, run, std::move(done)); });
  }

  void all_reduce(const collective::Verified& program, const std::vector<float>& own, std::vector<float>& mean, const collective::Run& run,
                  net::Done done) {
    const auto layout = collective::Layout::even(program.program(), courier().runner().rank(), own.size());
    courier().start(program, layout, buffers(own, mean), run, std::move(done));
  }

  void unseal() override {
    auto* mean = reinterpret_cast<float*>(output());
    std::fill_n(mean, count(), 0.0F);
    add_product(mean, 1, q_mean_);
    settle();
  }

  // What this iteration leaves to the next: once, whether anybody asked for the mean or not.
  void settle() {
    if (!std::exchange(owes_, false)) return;
    if (has_any()) add_product(residual_.data(), -1, q_own_);
    for (std::uint64_t c = 0; c < shape_.rank; ++c) {
      const float* const column = &q_mean_[c * shape_.columns];
      const bool lives = std::isnormal(dot(column, column, shape_.columns));
      if (lives) std::copy_n(column, shape_.columns, &q_[c * shape_.columns]);
      if (!lives) begin_anew(c);
    }
    const bool finite = all_finite(std::span<const float>(residual_));
    if (!finite) std::fill(residual_.begin(), residual_.end(), 0.0F);
  }

  void add_product(float* into, float factor, const std::vector<float>& q) const {
    for (std::uint64_t i = 0; i < shape_.rows; ++i) {
      for (std::uint64_t c = 0; c < shape_.rank; ++c) {
        add_multiple(into + i * shape_.columns, factor * p_[c * shape_.rows + i], &q[c * shape_.columns], shape_.columns);
      }
    }
  }

  void begin_anew(std::uint64_t c) {
    for (std::uint64_t j = 0; j < shape_.columns; ++j) {
      q_[c * shape_.columns + j] = static_cast<float>(2 * uniform(c, 0, static_cast<std::uint32_t>(j), kSite) - 1);
    }
  }

  static constexpr std::uint32_t kSite = 0x5067;
  static constexpr std::uint64_t kAtOnce = 4 << 20;  // multiplications on the loop: some milliseconds

  const Shape shape_;
  const collective::Verified &p_program_, &q_program_;
  std::vector<float> residual_;  // D between seal() and settle()
  std::vector<float> q_;
  std::vector<float> p_own_, p_, q_own_, q_mean_;
  bool owes_ = false;
  net::Failure ended_;  // the loop's
};

class PowerSgdWay final : public Way {
 public:
  PowerSgdWay(std::string name, std::uint64_t rank) : Way(std::move(name)), rank_(rank) {}
  bool exact() const override { return false; }
  // Matrices that become at least twice smaller.
  bool carries(const TensorSpec& tensor) const override {
    const auto shape = shape_of(tensor, rank_);
    return tensor.type == DType::f32 && tensor.count >= kLeastElements && !tensor.sparse && shape.rows > 0 && 2 * (shape.p() + shape.q()) <= tensor.count;
  }
  std::vector<Leg> legs(const Load& load) const override {
    const auto shape = shape_of(load.first, rank_);
    std::vector<Leg> both;
    for (const auto elements : {shape.p(), shape.q()}) {
      Leg leg{.elements = elements, .element_bytes = sizeof(float)};
      leg.program = collective::choose(leg.collective, load.ranks, leg.bytes(), load.link);
      both.push_back(leg);
    }
    return both;
  }
  // D Q, Dᵀ P, P Qᵀ twice: each in passes over D.
  double computing(const Load& load) const override { return 4 * static_cast<double>(rank_) * load.bytes() / load.link.add_rate; }
  std::unique_ptr<Flow> flow(const Road& road) const override {
    return std::make_unique<PowerSgdFlow>(road, shape_of(road.plan.tensors[road.unit.tensors.front()], rank_));
  }

 private:
  const std::uint64_t rank_;
};

}  // namespace

std::shared_ptr<const Way> make_powersgd_way(const WayName& name) {
  const double rank = name.number(0, "the rank", 1, 64, 1);
  if (rank != std::floor(rank)) name.refuse("the rank is not whole");
  return std::make_shared<PowerSgdWay>(name.text(), static_cast<std::uint64_t>(rank));
}

}  // namespace shoal::exchange
