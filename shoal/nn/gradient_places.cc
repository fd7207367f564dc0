#include "shoal/nn/gradient_places.h"

#include <pthread.h>

#include <mutex>
#include <utility>

namespace shoal::nn {
namespace {

constexpr int kMostSightings = 4;  // without two alike running: it moves
constexpr int kMostEdges = 3;

}  // namespace

struct GradientPlaces::Link {
  GradientPlaces* places = nullptr;  // nullptr once they are gone
};

class GradientPlaces::Allocator final : public c10::Allocator {
 public:
  // Those of the pass that this thread runs.
  static std::shared_ptr<Link>& watching() {
    static thread_local std::shared_ptr<Link> link;
    return link;
  }

  static void install() {
    // Lives as long as the process: tensors keep the allocator that they came from.
    static const auto* const once = [] {
      auto* const ours = new Allocator(*c10::GetAllocator(c10::kCPU));
      c10::SetAllocator(c10::kCPU, ours);
      // A child (of a data loader, say) that is forked while another thread gives memory back must not find the lock taken for ever.
      pthread_atfork([] { given().mutex.lock(); }, [] { given().mutex.unlock(); }, [] { given().mutex.unlock(); });
      return ours;
    }();
    static_cast<void>(once);
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    const auto& link = watching();
    return link && link->places ? link->places->allocate(bytes, below_) : below_.allocate(bytes);
  }
  bool is_simple_data_ptr(const c10::DataPtr& data) const override { return below_.is_simple_data_ptr(data); }
  // A place has it, and of what comes from below what was asked for as raw memory.
  c10::DeleterFnPtr raw_deleter() const override { return given().below ? &let_go : nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { below_.copy_data(to, from, bytes); }

  // Operators take raw memory, too (oneDNN's scratch), of which nothing but the address comes back: so it alone leads to who holds a place.
  static c10::DataPtr placed(std::byte* memory, std::shared_ptr<const void> held) {
    const std::lock_guard lock(given().mutex);
    given().held.insert_or_assign(memory, std::move(held));
    return {memory, memory, &let_go, c10::kCPU};
  }

 private:
  struct Given {
    std::mutex mutex;  // guards held
    std::unordered_map<const void*, std::shared_ptr<const void>> held;
    c10::DeleterFnPtr below = nullptr;  // of what is no place
  };

  explicit Allocator(c10::Allocator& below) : below_(below) { given().below = below.raw_deleter(); }

  static Given& given() {
    static auto* const all = new Given;  // lives as long as the process, as the allocator does
    return *all;
  }
  static void let_go(void* memory) {
    std::unique_lock lock(given().mutex);
    const auto found = given().held.extract(memory);
    lock.unlock();
    if (!found) given().below(memory);
  }

  c10::Allocator& below_;
};

GradientPlaces::GradientPlaces(const std::vector<at::Tensor>& parameters, std::vector<std::uint64_t> bytes)
    : bytes_(std::move(bytes)),
      sizes_(bytes_.begin(), bytes_.end()),
      traces_(bytes_.size()),
      link_(std::make_shared<Link>(Link{this})) {
  sizes_.erase(0);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameters[i]));
    accumulates_.emplace(accumulators_.back().get(), i);
  }
  Allocator::install();
}

GradientPlaces::~GradientPlaces() { link_->places = nullptr; }

void GradientPlaces::pass_begins() {
  latest_ = {};
  node_ = nullptr;
  made_.clear();
  where_.clear();
  Allocator::watching() = link_;
}

void GradientPlaces::pass_ends() {
  auto& watching = Allocator::watching();
  if (watching == link_) watching.reset();
  where_.clear();
}

std::optional<GradientPlaces::Key> GradientPlaces::current(std::size_t bytes) {
  if (!sizes_.contains(bytes)) return {};
  const auto node = torch::autograd::get_current_node();
  const auto behind = node ? nearest(*node, bytes) : std::nullopt;
  if (!behind) return {};
  if (std::exchange(node_, node.get()) != node.get()) made_.clear();
  return Key(behind->first, behind->second, made_[bytes]++);
}

// Between an operator and a parameter's accumulator lie views of it, casts and the like. The accumulator itself copies what it cannot keep.
std::optional<std::pair<std::size_t, int>> GradientPlaces::nearest(const torch::autograd::Node& node, std::size_t bytes) const {
  std::vector<const torch::autograd::Node*> level = {&node};
  for (int edges = 0; edges <= kMostEdges; ++edges) {
    std::vector<const torch::autograd::Node*> next;
    for (const auto* const at : level) {
      const auto found = accumulates_.find(at);
      if (found != accumulates_.end() && bytes_[found->second] == bytes) return std::pair(found->second, edges);
      for (const auto& edge : at->next_edges()) {
        if (edge.function) next.push_back(edge.function.get());
      }
    }
    level = std::move(next);
  }
  return {};
}

c10::DataPtr GradientPlaces::allocate(std::size_t bytes, c10::Allocator& below) {
  const auto key = current(bytes);
  if (!key) return below.allocate(bytes);
  const auto fixed = fixed_.find(*key);
  const auto place = fixed == fixed_.end() ? places_.end() : places_.find(fixed->second);
  if (place != places_.end() && !place->second.is_shared()) {
    auto* const memory = place->second.get(bytes);
    where_.insert_or_assign(memory, *key);
    return Allocator::placed(memory, place->second.share());
  }
  auto elsewhere = below.allocate(bytes);
  where_.insert_or_assign(elsewhere.get(), *key);
  return elsewhere;
}

void GradientPlaces::accumulated(std::size_t i, const at::Tensor& gradient) {
  if (bytes_[i] == 0 || !gradient.has_storage()) return;
  const void* const memory = gradient.storage().data();
  const auto place = places_.find(i);
  const bool placed = place != places_.end() && place->second.holds(memory, 1);
  (placed ? latest_.placed : latest_.copied) += bytes_[i];
  if (placed || (place != places_.end() && place->second.is_shared()))
    return;  // somebody holds the one before: a matter of this pass
  auto& known = traces_[i];
  if (known.site == Site::fixed && place != places_.end()) return settle(i, Site::moves);
  if (known.site == Site::unknown) trace(i, memory);
}

void GradientPlaces::trace(std::size_t i, const void* memory) {
  auto& known = traces_[i];
  ++known.sightings;
  const auto found = where_.find(memory);
  const auto seen =
      found != where_.end() && bytes_[std::get<0>(found->second)] == bytes_[i] ? std::optional(found->second) : std::nullopt;
  const bool again = seen && seen == known.seen;
  known.seen = seen;
  if (again) return settle(i, Site::fixed);
  if (known.sightings == kMostSightings) settle(i, seen ? Site::moves : Site::elsewhere);
}

void GradientPlaces::settle(std::size_t i, Site site) {
  auto& known = traces_[i];
  const bool is_taken = site == Site::fixed && !fixed_.emplace(*known.seen, i).second;
  if (site != Site::fixed && known.site == Site::fixed) fixed_.erase(*known.seen);
  known.site = is_taken ? Site::moves : site;
}

}  // namespace shoal::nn
