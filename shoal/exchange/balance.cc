#include "shoal/exchange/balance.h"

#include <algorithm>
#include <cmath>

namespace shoal::exchange {
namespace {

constexpr double kNumber = 4;           // bytes
constexpr double kSlice = 256 << 10;    // bytes
constexpr double kMostServed = 64;
constexpr double kPasses = 3;           // forward, gradients of activations, gradients of weights

bool takes_part(const Layer& layer) {
  return (layer.kind == LayerKind::fc || layer.kind == LayerKind::conv) && !layer.parameters.empty();
}

}  // namespace

const char* LayerBalance::share() const { return groups == members ? "data" : groups == 1 ? "model" : "hybrid"; }

std::vector<LayerBalance> balance(const Model& model, std::uint32_t members, double batch, double overlap) {
  std::vector<LayerBalance> all;
  for (const auto& layer : model.layers) {
    if (!takes_part(layer)) continue;
    LayerBalance b{.layer = layer.name, .kind = layer.kind};
    b.members = members;
    const double weights = static_cast<double>(layer.count()), activations = static_cast<double>(layer.inputs);
    b.data = members > 1 ? kNumber * weights * (2 - overlap) : 0;
    b.model = members > 1 ? 2 * kNumber * activations * batch : 0;
    b.flops_a_byte = kPasses * layer.forward_flops * batch / members / (kNumber * weights * (2 - overlap));
    b.best_groups = std::sqrt(2 * members * activations * batch / (weights * (2 - overlap)));
    b.groups = members;
    b.hybrid = b.data;
    for (std::uint32_t groups = 1; groups < members; ++groups) {
      if (members % groups != 0) continue;
      const double across = groups > 1 ? b.data * groups / members : 0;
      const double bytes = b.model / groups + across;
      if (bytes < b.hybrid) {
        b.hybrid = bytes;
        b.activations = b.model / groups;
        b.groups = groups;
      }
    }
    all.push_back(std::move(b));
  }
  return all;
}

double seconds_balanced(const Model& model, const Machine& machine, std::uint32_t members, double batch, double overlap) {
  const auto run = as_measured(model, batch / members, machine.flops);
  const auto shares = balance(model, members, batch, overlap);
  std::vector<Work> units;
  auto share = shares.begin();
  std::size_t tensor = 0;  // the first of a layer
  for (const auto& layer : model.layers) {
    if (layer.parameters.empty()) continue;
    const auto& first = run.tensors[tensor];
    tensor += layer.parameters.size();
    Work work{.ready = first.backward_at, .needed = first.forward_at, .priority = first.first_use};
    const bool shared = takes_part(layer);
    const double groups = shared ? share->groups : members;
    const double gradients = 2 * kNumber * static_cast<double>(layer.count()) * (groups - 1) / members;
    work.link = groups > 1 ? gradients / machine.link.rate + 2 * machine.link.alpha : 0;
    if (shared) work.thread = (share++)->activations / machine.link.rate;
    work.pieces = static_cast<std::uint32_t>(std::clamp(gradients / kSlice, 1.0, kMostServed));
    units.insert(units.begin(), work);
  }
  return foresee(units, run.compute.forward_seconds, run.compute.backward_seconds, Order::priority).seconds;
}

}  // namespace shoal::exchange
