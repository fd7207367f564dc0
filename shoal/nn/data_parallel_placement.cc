// DataParallel's gradients in memory that members of this host read in place: which have a place there, and what the report says of all.
#include <map>
#include <string>
#include <utility>

#include "shoal/nn/data_parallel.h"

namespace shoal::nn {
namespace {

// So many iterations after the plan was taken a gradient that had no fixed site before has one, or moves.
constexpr std::uint64_t kUntilSaid = 5;
constexpr std::size_t kMostNames = 4;

struct Counted {
  std::size_t count = 0;
  std::string names;

  void add(const std::string& name) {
    if (++count <= kMostNames) names += (names.empty() ? "" : ", ") + name;
    if (count == kMostNames + 1) names += ", ...";
  }
  std::string text(const std::string& what) const {
    return std::to_string(count) + " " + what + (count > 0 ? " (" + names + ")" : "");
  }
};

}  // namespace

std::unique_ptr<GradientPlaces> DataParallel::places_where_memory_is_shared() const {
  if (!session_.transport().lendable(1)) return nullptr;
  std::vector<at::Tensor> parameters;
  std::vector<std::uint64_t> bytes;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& parameter = parameters_[i].tensor;
    const bool here = parameter.is_cpu() && options_.pretend_devices.empty() && !tables_.is_sparse(i);
    parameters.push_back(parameter);
    bytes.push_back(here && parameter.nbytes() >= exchange::Buffer::kLeastLent ? parameter.nbytes() : 0);
  }
  return std::make_unique<GradientPlaces>(parameters, std::move(bytes));
}

// The plan says which gradients leave as their operators write them, the trace which operators write them always alike (gradient_places.h). What varies
// from step to step, rows and factors, tells its size first (exchange/row_gather.h).
void DataParallel::follow_placement() {
  if (!places_) return;
  std::map<std::size_t, exchange::Buffer> places;
  for (const auto& unit : exchange_->plan().units) {
    if (exchange::placement_of(unit) == exchange::Placement::in_place)
      places.emplace(unit.tensors.front(), session_.transport());
  }
  places_->give(std::move(places));
  says_placement_at_ = exchange_->iteration() + kUntilSaid;
}

void DataParallel::say_placement() {
  if (!places_ || says_placement_at_ == 0 || exchange_->iteration() != says_placement_at_) return;
  Counted means, placed, moving, elsewhere, small, packed, made, told_first;
  for (const auto& unit : exchange_->plan().units) {
    const auto placement = exchange::placement_of(unit);
    for (const auto i : unit.tensors) {
      const auto& name = parameters_[i].name;
      const bool sized = placement != exchange::Placement::size_first;
      (sized ? means : told_first).add(name);
      if (placement == exchange::Placement::packed) packed.add(name);
      if (placement == exchange::Placement::made) made.add(name);
      if (placement != exchange::Placement::in_place) continue;
      switch (places_->site(i)) {
        case GradientPlaces::Site::fixed: placed.add(name); break;
        case GradientPlaces::Site::moves: moving.add(name); break;
        default: (parameters_[i].tensor.nbytes() < exchange::Buffer::kLeastLent ? small : elsewhere).add(name);
      }
    }
  }
  const auto counted = places_->latest();
  std::string line = "memory that members of this host read in place: " + std::to_string(means.count) +
                     " means are placed in it; " + placed.text("gradients are written to it by the operators that make them") +
                     ", in this iteration " + std::to_string(counted.placed) + " bytes, and " + std::to_string(counted.copied) +
                     " of others were not";
  const auto say = [&line](const Counted& group, const std::string& what) {
    if (group.count > 0) line += "; " + group.text(what);
  };
  say(packed, "are copied once, beside their neighbours");
  say(moving, "are copied once: other operators make them from pass to pass");
  say(elsewhere, "are copied once: they are parts of larger tensors, or added to older ones");
  say(small, "are small, and copied");
  say(made, "are not sent, but what is made from them");
  say(told_first, "vary, and tell their size first");
  note(line);
}

}  // namespace shoal::nn
