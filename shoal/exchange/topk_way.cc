// "topk:SHARE[:MOMENTUM[:WARMUP[:CLIP]]]": of each tensor the share of elements with the largest magnitude travels, as numbers and values; what stays
// behind is gathered until it is large enough. Deep gradient compression (Lin, Han et al., ICLR 2018), for member r of N:
//
//     g   <- g min(1, CLIP / (|g| sqrt N))       local clipping (3.2), where CLIP is given
//     u_r <- MOMENTUM u_r + g                    momentum correction (3.2): the optimizer then keeps none of its own
//     v_r <- v_r + u_r                           what is to be sent
//     send v_r where it is largest; there v_r, u_r <- 0   (momentum factor masking, 3.3)
//     mean = sum over r of what was sent / N
//
// In the first WARMUP iterations the share falls in four equal parts: 25 %, 6.25 %, 1.56 %, 0.39 %, but never below SHARE (3.3).
// With MOMENTUM a small tensor, too, goes by this way, whole: its u_r, since the optimizer has no momentum for it either.
// Which elements travel is exact, ties by number, so that it does not depend on how they were looked for. Lossy.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "shoal/core/finite.h"
#include "shoal/core/reduce.h"
#include "shoal/exchange/packed_flow.h"
#include "shoal/exchange/programs.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

constexpr std::uint64_t kMostElements = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kSample = 16 * 1024;  // elements from which a first bound is guessed

struct Arguments {
  double share = 1, momentum = 0, warmup = 0, clip = 0;

  double share_at(std::uint64_t step) const {
    const auto past = static_cast<double>(step);
    return past < warmup ? std::max(share, std::pow(0.25, 1 + std::floor(4 * past / warmup))) : share;
  }
};

// A small tensor is here for its momentum alone.
std::uint64_t elements_of(double share, std::uint64_t count) {
  if (count < kLeastElements) return count;
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count))), 1, count);
}

// Orders what is no number above infinity: it is to be seen.
std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }

// The `k` largest magnitudes of `values`, the first ones among equals; their numbers, ascending.
void largest(std::span<const float> values, std::uint64_t k, std::vector<std::uint32_t>& numbers) {
  const auto count = values.size();
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const auto of_a = magnitude(values[a]), of_b = magnitude(values[b]);
    return of_a != of_b ? of_a > of_b : a < b;
  };
  // A bound from a sample leaves few to look at; where it leaves too few, all are.
  const std::uint64_t stride = std::max<std::uint64_t>(1, count / kSample);
  std::vector<std::uint32_t> sample;
  for (std::uint64_t i = 0; i < count; i += stride) sample.push_back(magnitude(values[i]));
  const auto above = std::min<std::uint64_t>(sample.size() - 1, sample.size() * k * 5 / (count * 4) + 16);
  std::nth_element(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(above), sample.end(), std::greater<>());
  std::uint32_t bound = sample[above];
  for (;;) {
    numbers.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      if (magnitude(values[i]) >= bound) numbers.push_back(i);
    }
    if (numbers.size() >= k) break;
    bound = 0;
  }
  std::nth_element(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(k - 1), numbers.end(), before);
  numbers.resize(k);
  std::sort(numbers.begin(), numbers.end());
}

class TopkFlow final : public PackedFlow {
 public:
  TopkFlow(const Road& road, Arguments arguments)
      : PackedFlow(road),
        arguments_(arguments),
        ranks_(road.plan.ranks),
        iterations_(road.iterations),
        turns_(road.plan.turns()),
        program_(road.programs.cheapest(Collective::all_gather, ranks_ * 8 * elements_of(arguments.share, count()), road.plan.link)),
        unsent_(count()),
        velocity_(arguments.momentum > 0 ? count() : 0) {}

  void start(const Departure& departure, net::Done done) override {
    collective::Run run = departure.run;
    run.type = DType::i32;
    run.scaling = {};
    weights_ = departure.weights;
    divisor_ = departure.run.scaling.divisor;
    label_ = run.label;
    const auto layout = collective::Layout::even(program_.program(), courier().runner().rank(), all_.size());
    courier().start(program_, layout, buffers(own_, all_), run,
                    [this, done = std::move(done)](const net::Failure& why) { done(why ? why : check()); });
  }

  std::vector<Kept> kept() override {
    std::vector<Kept> kept = {{"unsent", DType::f32, unsent_.size(), reinterpret_cast<std::byte*>(unsent_.data())}};
    if (!velocity_.empty()) kept.push_back({"velocity", DType::f32, velocity_.size(), reinterpret_cast<std::byte*>(velocity_.data())});
    return kept;
  }

 private:
  void seal() override {
    const auto k = elements_of(arguments_.share_at(iterations_ / turns_), count());
    numbers_ = k < count() ? k : 0;
    own_.resize(numbers_ + k);
    all_.resize(own_.size() * ranks_);
    chosen_.resize(k);
    const std::span gradient(reinterpret_cast<const float*>(input()), has_any() ? count() : 0);
    if (!has_any()) {  // zeros; what it has gathered stays
      std::iota(chosen_.begin(), chosen_.end(), 0U);
      say([](std::uint32_t) { return 0.0F; });
    } else if (!all_finite(gradient)) {  // what is not, above all; nothing of it is gathered
      largest(gradient, k, chosen_);
      say([&](std::uint32_t i) { return gradient[i]; });
    } else {
      gather(gradient);
      largest(unsent_, k, chosen_);
      say([&](std::uint32_t i) {
        if (!velocity_.empty() && k < count()) velocity_[i] = 0;
        return std::exchange(unsent_[i], 0.0F);
      });
    }
  }

  // Of each chosen element its number and value(number).
  template <class Value>
  void say(const Value& value) {
    std::copy_n(chosen_.begin(), numbers_, own_.begin());
    std::transform(chosen_.begin(), chosen_.end(), own_.begin() + static_cast<std::ptrdiff_t>(numbers_),
                   [&](std::uint32_t number) { return std::bit_cast<std::uint32_t>(value(number)); });
  }

  void gather(std::span<const float> gradient) {
    float factor = 1;
    if (arguments_.clip > 0) {
      double square = 0;
      for (const float g : gradient) square += double{g} * g;
      const double most = arguments_.clip / std::sqrt(static_cast<double>(ranks_)), norm = std::sqrt(square);
      if (norm > most) factor = static_cast<float>(most / norm);
    }
    const auto momentum = static_cast<float>(arguments_.momentum);
    for (std::uint64_t i = 0; i < count(); ++i) {
      float term = gradient[i] * factor;
      if (!velocity_.empty()) term = velocity_[i] = momentum * velocity_[i] + term;
      unsent_[i] += term;
    }
  }

  // Numbers from other members are places to write to.
  net::Failure check() {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint64_t j = 0; j < numbers_; ++j) {
        const auto number = all_[rank * own_.size() + j];
        if (number < count()) continue;
        return courier().mismatch(rank, "element " + std::to_string(number) + " of " + label_);
      }
    }
    return nullptr;
  }

  void unseal() override {
    auto* mean = reinterpret_cast<float*>(output());
    std::fill_n(mean, count(), 0.0F);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const auto* theirs = &all_[rank * own_.size()];
      const float weight = weights_.empty() ? 1 : static_cast<float>(weights_[rank]);
      for (std::uint64_t j = numbers_; j < own_.size(); ++j) mean[numbers_ > 0 ? theirs[j - numbers_] : j] += weight * std::bit_cast<float>(theirs[j]);
    }
    if (divisor_ != 1) divide(DType::f32, mean, divisor_, count());
  }

  const Arguments arguments_;
  const std::uint32_t ranks_;
  const std::uint64_t& iterations_;
  const std::uint32_t turns_;  // of which one has this tensor
  const collective::Verified& program_;
  std::vector<float> unsent_, velocity_;  // v and u

  std::vector<std::uint32_t> chosen_;
  std::size_t numbers_ = 0;               // that travel: none where all elements do
  std::vector<std::uint32_t> own_, all_;  // of each member these numbers and the bits of as many values, or of all
  std::vector<double> weights_;
  double divisor_ = 1;
  std::string label_;
};

class TopkWay final : public Way {
 public:
  TopkWay(std::string name, Arguments arguments) : Way(std::move(name)), arguments_(arguments) {}
  bool exact() const override { return false; }
  bool has_momentum() const override { return arguments_.momentum > 0; }
  bool carries(const TensorSpec& tensor) const override {
    return tensor.type == DType::f32 && (tensor.count >= kLeastElements || has_momentum()) && tensor.count <= kMostElements && !tensor.sparse;
  }
  std::vector<Leg> legs(const Load& load) const override {  // behind its warm-up
    Leg leg{.collective = Collective::all_gather, .elements = load.ranks * elements_sent(load.count), .element_bytes = sizeof(float)};
    leg.program = collective::choose(leg.collective, load.ranks, leg.bytes(), load.link);
    return {leg};
  }
  double computing(const Load& load) const override { return 8 * load.bytes() / load.link.add_rate; }
  std::unique_ptr<Flow> flow(const Road& road) const override { return std::make_unique<TopkFlow>(road, arguments_); }

 private:
  std::uint64_t elements_sent(std::uint64_t count) const {
    const auto k = elements_of(arguments_.share, count);
    return k < count ? 2 * k : k;
  }

  const Arguments arguments_;
};

}  // namespace

std::shared_ptr<const Way> make_topk_way(const WayName& name) {
  Arguments arguments;
  arguments.share = name.number(0, "the share", 1e-6, 1, 1);
  arguments.momentum = name.number(1, "the momentum", 0, 0.9999, 0);
  arguments.warmup = name.number(2, "the number of iterations to warm up", 0, 1e9, 0);
  arguments.clip = name.number(3, "the norm to clip at", 0, 1e9, 0);
  return std::make_shared<TopkWay>(name.text(), arguments);
}

}  // namespace shoal::exchange
