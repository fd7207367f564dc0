#include "shoal/nn/first_plan.h"

#include <utility>

#include "shoal/exchange/planner.h"

namespace shoal::nn {

std::vector<exchange::TensorSpec> describe(const std::vector<NamedTensor>& parameters, const Tables& tables) {
  std::vector<exchange::TensorSpec> specs;
  for (const auto& [name, tensor] : parameters) {
    exchange::TensorSpec spec;
    spec.name = name;
    spec.type = element_type(tensor, name);
    spec.count = static_cast<std::uint64_t>(tensor.numel()) * (tensor.is_complex() ? 2 : 1);
    spec.first_use = static_cast<std::uint32_t>(specs.size());
    if (tensor.dim() >= 2) spec.outputs = static_cast<std::uint64_t>(tensor.size(0));
    specs.push_back(std::move(spec));
  }
  tables.describe(specs);
  return specs;
}

exchange::ExchangePlan first_plan(std::vector<exchange::TensorSpec> tensors, const exchange::Choice& choice,
                                  const std::optional<exchange::ExchangePlan>& saved, std::uint32_t ranks, std::uint32_t servers) {
  if (saved) exchange::check_fits(*saved, tensors, ranks, servers);
  auto first = saved ? exchange::parse_choice(saved->choice, "the saved plan") : choice;
  if (collective::is_of_network(first.way)) first = {};  // before the links are measured no network is known
  std::erase_if(first.overrides, [](const auto& override) { return collective::is_of_network(override.way); });
  return exchange::make_plan(std::move(tensors), ranks, {}, {}, first, servers);
}

exchange::ExchangePlan agreed_plan(Session& session, const std::function<exchange::ExchangePlan()>& make) {
  std::string agreed;
  session.together("agreement on the plan", [&] {
    const auto own = session.place() == 0 ? to_json(make()) : std::string();
    agreed = session.broadcast_text(own, 0, "agreement on the plan");
  });
  return exchange::plan_from_json(agreed, "the plan of rank 0");
}

}  // namespace shoal::nn
