// The pairs that one iteration's backward passes left of each layer, in the form in which they leave (factor::Pair), and the product of what
// all members sent.
//
// Threads: the caller's, as data_parallel.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "shoal/factor/factor.h"

namespace shoal::nn {

class LayerPairs {
 public:
  explicit LayerPairs(std::size_t parameters)
      : noted_(parameters), latest_(parameters), filled_(parameters, 1), uses_(parameters), held_(parameters), given_up_(parameters),
        kept_(parameters) {}

  // What a pass had for parameter i, whether it was taken or not: what the plan is made from. look_through: to know filled(), too.
  void note(std::size_t i, const at::Tensor& x, const at::Tensor& g, bool goes_on, bool look_through);
  std::uint64_t rows(std::size_t i) const { return latest_[i].rows; }   // in the latest whole iteration
  bool bf16_rows(std::size_t i) const { return latest_[i].rows > 0 && !latest_[i].wide; }
  bool takes_data(std::size_t i) const { return latest_[i].rows > 0 && !latest_[i].goes_on; }  // nobody asked for a gradient of what it is given
  double filled(std::size_t i) const { return filled_[i]; }             // the share of the latest pair's numbers that are not zero
  void add(std::size_t i, const at::Tensor& x, const at::Tensor& g) { uses_[i].push_back({x, g}); }

  // Gradients that accumulate here only, before they leave (no_sync): copies, for the next pass may well overwrite what a layer was given.
  void hold(std::size_t i, const at::Tensor& x, const at::Tensor& g);
  // With `rows` more there are no more numbers in the pairs that are held than in their product, and none was multiplied yet.
  bool may_hold(std::size_t i, std::uint64_t rows, const factor::Shape& shape) const;
  bool holds(std::size_t i) const { return held_[i] > 0; }
  bool given_up(std::size_t i) const { return given_up_[i]; }
  // The sum of the products of what is held, N x M in f32, which is none then; nor will more be held in this iteration. Undefined: nothing was.
  at::Tensor multiply_held(std::size_t i);

  // All uses of the layer in one piece each, K x M and K x N of `type`, with `rest`; undefined where there is nothing. Stays until clear();
  // who moves it to the host puts it back here.
  struct Kept {
    at::Tensor x, g, rest;
  };
  Kept& gather(std::size_t i, at::ScalarType type, const at::Tensor& rest);
  void clear();  // the iteration is over

 private:
  struct Use {
    at::Tensor x, g;
  };
  struct Noted {
    std::uint64_t rows = 0;
    bool wide = false;  // some are not bf16
    bool goes_on = false;
  };
  std::vector<Noted> noted_, latest_;  // in this iteration so far, in the one before
  std::vector<double> filled_;
  std::vector<std::vector<Use>> uses_;  // a layer may be used several times
  std::vector<std::uint64_t> held_;     // rows that passes before this one left in uses_
  std::vector<bool> given_up_;
  std::vector<Kept> kept_;
};

factor::Pair as_pair(const LayerPairs::Kept& on_host);

// The mean gradient, N x M in f32: one product over all members' rows in rank order, where `placed` puts them. Of bf16 rows it is added up in
// f32 and rounded to bf16 once, as autograd's under autocast; unequally weighted rows stay in f32.
at::Tensor multiply(const factor::Gathered& gathered, const factor::Shape& shape, const std::function<at::Tensor(const at::Tensor&)>& placed);

// Floating-point operations/s, here and now; 0: not measured.
struct MultiplyRates {
  double others = 0, own = 0;
};
// Of others' rows: those of `all` rows beyond `own` ones, over what a product of all takes longer
// than one of its own rows, which is what a backward pass does anyway. A product of few rows takes as long as writing its result does, however many they are.
// Not measured where there are no others. Takes as long as two products of each do, or 50 ms if that is longer.
MultiplyRates multiply_rates(const factor::Shape& shape, std::uint64_t own, std::uint64_t all, c10::Device device);

}  // namespace shoal::nn
