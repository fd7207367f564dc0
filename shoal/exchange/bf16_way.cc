// In half the bytes: gradients are rounded to bf16 on their way to the owner of each part, who adds them in f32 in rank order, and the mean is
// rounded on its way back. Lossy: 8 bits of mantissa. Nothing is remembered of what was rounded away.
#include <bit>
#include <vector>

#include "shoal/exchange/packed_flow.h"
#include "shoal/exchange/programs.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

// To nearest, ties to even; what is no number stays none.
std::uint16_t narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>((nan ? bits | 0x400000u : bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
float widen(std::uint16_t value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }

// Of the programs in which one member adds all contributions to a part in one pass, and so rounds once.
std::string program_for(std::uint32_t ranks, double bytes, const collective::LinkModel& link) {
  const auto price = [&](const char* program) { return collective::price(Collective::all_reduce, program, ranks, bytes, link); };
  return price("gather") < price("direct") ? "gather" : "direct";
}

class Bf16Flow final : public PackedFlow {
 public:
  explicit Bf16Flow(const Road& road)
      : PackedFlow(road),
        program_(road.programs.named(Collective::all_reduce, program_for(road.plan.ranks, static_cast<double>(bytes()) / 2, road.plan.link))),
        layout_(collective::Layout::even(program_.program(), road.runner.rank(), count())) {}

  void start(const Departure& departure, net::Done done) override {
    collective::Run run = departure.run;
    run.type = DType::bf16;
    courier().start(program_, layout_, buffers(out_, back_), run, std::move(done));
  }

 private:
  void seal() override {
    out_.resize(count());
    back_.resize(count());
    const auto* from = reinterpret_cast<const float*>(input());
    for (std::uint64_t i = 0; i < count(); ++i) out_[i] = narrow(from[i]);
  }
  void unseal() override {
    auto* to = reinterpret_cast<float*>(output());
    for (std::uint64_t i = 0; i < count(); ++i) to[i] = widen(back_[i]);
  }

  const collective::Verified& program_;
  const collective::Layout layout_;
  std::vector<std::uint16_t> out_, back_;
};

class Bf16Way final : public Way {
 public:
  using Way::Way;
  bool exact() const override { return false; }
  bool packs() const override { return true; }
  bool carries(const TensorSpec& tensor) const override { return tensor.type == DType::f32; }
  std::vector<Leg> legs(const Load& load) const override {
    return {{.program = program_for(load.ranks, load.bytes() / 2, load.link), .elements = load.count, .element_bytes = size_of(DType::bf16)}};
  }
  double computing(const Load& load) const override { return 2 * load.bytes() / load.link.add_rate; }
  std::unique_ptr<Flow> flow(const Road& road) const override { return std::make_unique<Bf16Flow>(road); }
};

}  // namespace

std::shared_ptr<const Way> make_bf16_way(const WayName& name) { return std::make_shared<Bf16Way>(name.text()); }

}  // namespace shoal::exchange
