// In a quarter of the bytes: one byte an element and a scale for every 512 of them, the largest magnitude / 127. Each member owns a part
// of the tensor, gets everybody's bytes for it, adds what they mean in rank order, and sends the mean to all in the same form. What
// rounding takes away is remembered, by each member of its gradients and by the owner of its means, and added the next time (error
// feedback: Seide et al., Interspeech 2014; in both directions: Tang et al., "DoubleSqueeze", ICML 2019). All members decode the
// same bytes, so that they have the same bits.
//
//     gradient + residual --encode--> blocks --all-to-all--> owner: sum in rank order / divisor + residual --encode--> blocks --all-gather--> decode
//
// A block whose values are not all finite is told as such and not remembered.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "shoal/exchange/packed_flow.h"
#include "shoal/exchange/programs.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

constexpr std::uint64_t kLength = 512;       // elements of a block
constexpr float kSmallest = 1e-30F;          // a block of smaller magnitudes is zero, and remembered as a whole

struct Block {  // on the wire
  float scale = 0;  // 0: all zero; no number: not all are finite
  std::int8_t value[kLength] = {};
};
static_assert(sizeof(Block) == sizeof(float) + kLength);

// block = x, rounded; x becomes what is left over.
void encode(float* x, std::uint64_t count, Block& block) {
  float largest = 0;
  bool finite = true;
  for (std::uint64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    finite = finite && std::isfinite(x[i]);
  }
  block = {};
  if (!finite) {
    block.scale = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(x, count, 0.0F);
    return;
  }
  if (largest < kSmallest) return;
  block.scale = largest / 127;
  const float per_step = 127 / largest;
  constexpr float kRound = 12582912;  // 1.5 x 2^23: a sum with it has no room for fractions
  for (std::uint64_t i = 0; i < count; ++i) {
    const float rounded = x[i] * per_step + kRound - kRound;
    block.value[i] = static_cast<std::int8_t>(rounded);
    x[i] -= rounded * block.scale;
  }
}

// A tensor of `blocks` blocks in `ranks` nearly equal parts, one for each owner.
struct Parts {
  std::uint64_t blocks = 0;
  std::uint32_t ranks = 1;
  std::uint64_t begin(std::uint32_t rank) const { return blocks * rank / ranks; }
  std::uint64_t size(std::uint32_t rank) const { return begin(rank + 1) - begin(rank); }
};

class Int8Flow final : public PackedFlow {
 public:
  explicit Int8Flow(const Road& road)
      : PackedFlow(road),
        rank_(road.runner.rank()),
        parts_{(count() + kLength - 1) / kLength, road.plan.ranks},
        to_owners_(road.programs.named(Collective::all_to_all, "direct")),
        to_all_(road.programs.cheapest(Collective::all_gather, parts_.blocks * sizeof(Block), road.plan.link)),
        residual_(parts_.blocks * kLength),
        owners_residual_(parts_.size(rank_) * kLength),
        own_(parts_.blocks),
        mine_(parts_.size(rank_) * parts_.ranks),
        mean_of_mine_(parts_.size(rank_)),
        mean_(parts_.blocks) {
    const std::uint32_t ranks = parts_.ranks;
    owners_layout_.count.resize(ranks * ranks);
    owners_layout_.input.assign(ranks * ranks, 0);
    owners_layout_.output.assign(ranks * ranks, 0);
    for (std::uint32_t from = 0; from < ranks; ++from) {
      for (std::uint32_t to = 0; to < ranks; ++to) owners_layout_.count[from * ranks + to] = parts_.size(to) * sizeof(Block);
      owners_layout_.input[rank_ * ranks + from] = parts_.begin(from) * sizeof(Block);
      owners_layout_.output[from * ranks + rank_] = from * parts_.size(rank_) * sizeof(Block);
      all_layout_.count.push_back(parts_.size(from) * sizeof(Block));
      all_layout_.output.push_back(parts_.begin(from) * sizeof(Block));
    }
    all_layout_.input.assign(ranks, 0);
  }

  std::uint64_t operations() const override { return 2; }

  void start(const Departure& departure, net::Done done) override {
    collective::Run run = departure.run;
    run.type = DType::u8;
    run.scaling = {};
    const auto scaling = departure.run.scaling;
    courier().start(to_owners_, owners_layout_, buffers(own_, mine_), run,
                    [this, run, scaling, weights = departure.weights, done = std::move(done)](const net::Failure& why) mutable {
                      if (why) return done(why);
                      add_mine(weights, scaling.divisor);
                      ++run.operation;
                      courier().start(to_all_, all_layout_, buffers(mean_of_mine_, mean_), run, std::move(done));
                    });
  }

  std::vector<Kept> kept() override {
    return {{"residual", DType::f32, residual_.size(), reinterpret_cast<std::byte*>(residual_.data())},
            {"owner's residual", DType::f32, owners_residual_.size(), reinterpret_cast<std::byte*>(owners_residual_.data())}};
  }

 private:
  // Who has no gradient sends nothing, and keeps what was left over.
  void seal() override {
    if (!has_any()) return std::fill(own_.begin(), own_.end(), Block());
    const auto* gradient = reinterpret_cast<const float*>(input());
    for (std::uint64_t i = 0; i < count(); ++i) residual_[i] += gradient[i];
    for (std::uint64_t b = 0; b < parts_.blocks; ++b) encode(&residual_[b * kLength], kLength, own_[b]);
  }

  void add_mine(const std::vector<double>& weights, double divisor) {
    float sum[kLength];
    for (std::uint64_t b = 0; b < mean_of_mine_.size(); ++b) {
      std::fill_n(sum, kLength, 0.0F);
      bool anything = false;
      for (std::uint32_t rank = 0; rank < parts_.ranks; ++rank) {
        const Block& block = mine_[rank * mean_of_mine_.size() + b];
        anything = anything || block.scale != 0;
        const float scale = weights.empty() ? block.scale : block.scale * static_cast<float>(weights[rank]);
        for (std::uint64_t i = 0; i < kLength; ++i) sum[i] += scale * static_cast<float>(block.value[i]);
      }
      mean_of_mine_[b] = {};
      if (!anything) continue;  // nobody has a gradient, and so nobody installs this mean
      float* const left = &owners_residual_[b * kLength];
      for (std::uint64_t i = 0; i < kLength; ++i) left[i] += sum[i] / static_cast<float>(divisor);
      encode(left, kLength, mean_of_mine_[b]);
    }
  }

  void unseal() override {
    auto* to = reinterpret_cast<float*>(output());
    for (std::uint64_t i = 0; i < count(); ++i) to[i] = mean_[i / kLength].scale * static_cast<float>(mean_[i / kLength].value[i % kLength]);
  }

  const std::uint32_t rank_;
  const Parts parts_;
  const collective::Verified &to_owners_, &to_all_;
  collective::Layout owners_layout_, all_layout_;
  std::vector<float> residual_, owners_residual_;     // of the gradients, of the means of the own part
  std::vector<Block> own_, mine_, mean_of_mine_, mean_;  // mine: all members' blocks of the own part, by rank
};

class Int8Way final : public Way {
 public:
  using Way::Way;
  bool exact() const override { return false; }
  bool carries(const TensorSpec& tensor) const override { return tensor.type == DType::f32 && tensor.count >= kLeastElements; }
  std::vector<Leg> legs(const Load& load) const override {
    const Parts parts{(load.count + kLength - 1) / kLength, load.ranks};
    Leg to_owners{.collective = Collective::all_to_all, .program = "direct", .elements = parts.blocks, .element_bytes = sizeof(Block)};
    Leg to_all = to_owners;
    to_all.collective = Collective::all_gather;
    to_all.program = collective::choose(Collective::all_gather, load.ranks, to_all.bytes(), load.link);
    for (std::uint32_t owner = 0; owner < load.ranks; ++owner) to_all.chunks.push_back(parts.size(owner));
    for (std::uint32_t from = 0; from < load.ranks; ++from) to_owners.chunks.insert(to_owners.chunks.end(), to_all.chunks.begin(), to_all.chunks.end());
    return {to_owners, to_all};
  }
  double computing(const Load& load) const override { return 5 * load.bytes() / load.link.add_rate; }
  std::unique_ptr<Flow> flow(const Road& road) const override { return std::make_unique<Int8Flow>(road); }
};

}  // namespace

std::shared_ptr<const Way> make_int8_way(const WayName& name) { return std::make_shared<Int8Way>(name.text()); }

}  // namespace shoal::exchange
