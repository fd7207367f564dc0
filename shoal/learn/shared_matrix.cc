#include "shoal/learn/shared_matrix.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "shoal/collective/probe.h"
#include "shoal/core/error.h"
#include "shoal/learn/chosen_matrix.h"
#include "shoal/learn/matrix_choice.h"
#include "shoal/learn/memory.h"
#include "shoal/replica/replica.h"

namespace shoal::learn {
namespace {

template <class T>
class ServedMatrix final : public SharedMatrix<T> {
 public:
  ServedMatrix(table::Worker& worker, const MatrixForm& form, net::Rank rank, net::Rank size)
      : SharedMatrix<T>(form.width),
        table_(worker.open<T>({.name = form.name,
                               .width = form.width,
                               .consistency = form.consistency,
                               .initial = {},
                               .encoding = form.encoding})),
        rank_(rank),
        size_(size) {}
  void read(std::span<const table::Key> keys, std::span<T> values) override { table_.read(keys, values); }
  void fetch(std::span<const table::Key> keys, std::span<T> values) override { table_.fetch(keys, values); }
  void add(factor::Outer<T> outer) override {
    changes_.assign(outer.rows().size() * outer.width(), 0);
    for (std::size_t at = 0; at < outer.rows().size(); ++at) outer.add_to(at, std::span(changes_).subspan(at * outer.width(), outer.width()));
    table_.add(outer.rows(), changes_);
  }
  void tick() override { table_.tick(); }
  void barrier() override { table_.barrier(); }
  void set(std::span<const table::Key> keys, std::span<const T> values) override { assign_rows(table_, keys, values); }
  void scale(double factor, table::Key end) override {  // each member a share
    const KeyRange share{rank_, end, size_};
    std::vector<T> values(share.size() * table_.width());
    if (factor != 0) in_parts(keys_in(share), table_.width(), std::span(values), [&](auto keys, auto part) { table_.fetch(keys, part); });
    for (T& value : values) value = static_cast<T>(value * factor);
    table_.barrier();  // all have read
    assign_rows(table_, share, values);
    table_.go_on_from(0);  // what rounding left out was of the rows before
    table_.barrier();
  }

 private:
  table::Table<T> table_;
  net::Rank rank_, size_;
  std::vector<T> changes_;
};

template <class T>
class ReplicatedMatrix final : public SharedMatrix<T> {
 public:
  ReplicatedMatrix(net::Transport& transport, const replica::Options& options) : SharedMatrix<T>(options.width), replica_(transport, options) {}
  void read(std::span<const table::Key> keys, std::span<T> values) override { replica_.read(keys, values); }
  void fetch(std::span<const table::Key> keys, std::span<T> values) override { replica_.read(keys, values); }
  void add(factor::Outer<T> outer) override { replica_.add(std::move(outer)); }
  void tick() override { replica_.tick(); }
  void barrier() override { replica_.barrier(); }
  void set(std::span<const table::Key> keys, std::span<const T> values) override {
    in_parts(keys, this->width(), values, [&](auto part, auto rows) { replica_.set(part, rows); });
  }
  void scale(double factor, table::Key end) override { replica_.scale(factor, end); }

 private:
  replica::Replica<T> replica_;
};

// By how many clocks replicas may differ, where the consistency is one that they have.
std::optional<unsigned> staleness_of(const table::Consistency& consistency) {
  if (const auto* bsp = std::get_if<table::Bsp>(&consistency)) return bsp->backups == 0 ? std::optional(0u) : std::nullopt;
  if (const auto* ssp = std::get_if<table::Ssp>(&consistency)) return ssp->staleness;
  if (const auto* essp = std::get_if<table::Essp>(&consistency)) return essp->staleness;
  return std::nullopt;
}

// Floating-point operations/s of adding factors to rows of that width.
template <class T>
double multiply_rate(std::size_t width) {
  constexpr std::size_t rows = 64, vectors = 32;
  std::vector<std::uint64_t> keys(rows);
  std::iota(keys.begin(), keys.end(), 0u);
  factor::Outer<T> outer(width, keys);
  for (std::size_t k = 0; k < vectors; ++k) {
    std::ranges::fill(outer.new_vector(), T{1});
    for (std::size_t at = 0; at < rows; ++at) outer.add(at, 1);
  }
  outer.seal();
  std::vector<T> into(rows * width);
  double best = 1;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const Instant begin = steady_now();
    for (std::size_t at = 0; at < rows; ++at) outer.add_to(at, std::span(into).subspan(at * width, width));
    best = std::min(best, seconds_between(begin, steady_now()));
  }
  return 2.0 * rows * vectors * static_cast<double>(width) / std::max(best, 1e-9);
}

// operation: pair_probe_operations() from it on.
factor::Overlay overlay_for(net::Transport& transport, const Sharing& sharing, double bytes, std::uint64_t operation, Nanoseconds patience) {
  switch (sharing.over) {
    case Sharing::Over::full: return factor::Overlay::full(transport.size());
    case Sharing::Over::halton: return factor::Overlay::halton(transport.size());
    default: break;
  }
  const auto pairs = collective::probe_pairs(transport, operation, transport.now() + patience);
  return factor::Overlay::fitted(transport.size(), sharing.targets, [&](net::Rank from, net::Rank to) {
    const auto& pair = pairs.at(from, to);
    return std::max(pair.latency + bytes / std::max(pair.rate_alone, 1.0), 1e-9);
  });
}

}  // namespace

Sharing sharing_from(const std::string& text) {
  if (text == "auto") return {};
  if (text == "rows") return {.way = Sharing::Way::rows};
  if (text == "factors") return {.way = Sharing::Way::factors};
  if (text == "factors:halton") return {.way = Sharing::Way::factors, .over = Sharing::Over::halton};
  const std::string fitted = "factors:fitted:";
  unsigned targets = 0;
  if (text.starts_with(fitted)) {
    const char* end = text.data() + text.size();
    const auto [rest, fault] = std::from_chars(text.data() + fitted.size(), end, targets);
    if (fault == std::errc{} && rest == end && targets > 0) return {.way = Sharing::Way::factors, .over = Sharing::Over::fitted, .targets = targets};
  }
  throw Error(Code::invalid_argument, "\"" + text + "\" is none", "sharing", "auto, rows, factors, factors:halton or factors:fitted:2");
}

std::string name(const Sharing& sharing) {
  if (sharing.way == Sharing::Way::automatic) return "auto";
  if (sharing.way == Sharing::Way::rows) return "rows";
  if (sharing.over == Sharing::Over::fitted) return "factors:fitted:" + std::to_string(sharing.targets);
  return sharing.over == Sharing::Over::halton ? "factors:halton" : "factors";
}

template <class T>
std::unique_ptr<SharedMatrix<T>> share(net::Transport& transport, table::Worker& worker, const MatrixForm& form, const Sharing& sharing,
                                       const std::function<exchange::MatrixLoad()>& load, Nanoseconds patience) {
  const auto staleness = staleness_of(form.consistency);
  const bool asked_for = sharing.way == Sharing::Way::factors;
  if (asked_for && !staleness) {
    throw Error(Code::invalid_argument, "factors have clocks alone: bsp, ssp and essp, not " + table::name(form.consistency), "sharing",
                "share rows, or take another consistency");
  }
  if (asked_for && *staleness > 0 && worker.keeps_order()) {
    throw Error(Code::invalid_argument, "which factors a member has taken in is not recorded", "sharing", "share rows, or take bsp");
  }
  const bool rounded = form.encoding != table::Encoding::none;
  if (asked_for && rounded) {
    throw Error(Code::invalid_argument, std::string("factors travel as they are, not as ") + table::name(form.encoding),
                "sharing", "share rows, or leave it out");
  }
  const auto served = [&transport, &worker, form]() -> std::unique_ptr<SharedMatrix<T>> {
    return std::make_unique<ServedMatrix<T>>(worker, form, transport.rank(), transport.size());
  };
  const bool is_free = sharing.way == Sharing::Way::automatic;
  const auto rows_because = [&](const char* why) {
    auto matrix = served();
    matrix->shared_as(false, why);
    return matrix;
  };
  if (transport.size() == 1 || !staleness || rounded || sharing.way == Sharing::Way::rows) return served();
  if (is_free && worker.keeps_order()) return rows_because("the run is recorded, or a replay");  // what was measured would decide
  if (is_free && transport.on_peer_lost() == net::OnPeerLost::shrink) return rows_because("members may be lost, one of whom may relay factors");
  const auto rows = static_cast<double>(form.rows), width = static_cast<double>(form.width);
  if (asked_for) need_memory(2 * rows * width * sizeof(T), "all " + std::to_string(form.rows) + " rows of " + std::to_string(form.width) + " numbers, twice,");
  auto choice = std::make_unique<MatrixChoice>(
      transport, worker,
      MatrixChoice::Of{form.name, rows, width, sizeof(T), table::pushes(form.consistency), multiply_rate<T>(form.width), sharing.channel, patience});
  const MatrixChoice::Load clock = choice->load(load());
  const double sent = exchange::price(exchange::MatrixWay::factors, clock.mean, 2, {}, clock.multiply_rate).sent;
  const auto replicated = [&transport, &choice = *choice, form, sharing, staleness = *staleness, sent, patience]() -> std::unique_ptr<SharedMatrix<T>> {
    const std::uint64_t operation = choice.take_operations(collective::pair_probe_operations(transport.size()));
    const replica::Options options{.name = form.name, .rows = form.rows, .width = form.width, .staleness = staleness,
                                   .overlay = overlay_for(transport, sharing, sent, operation, patience), .patience = patience, .channel = sharing.channel};
    return std::make_unique<ReplicatedMatrix<T>>(transport, options);
  };
  if (asked_for) return replicated();
  const MatrixChoice::Answer answer = clock.room ? choice->answer(clock) : MatrixChoice::Answer{.why = "a member has no room for all of them"};
  if (answer.by_links && clock.room_for_both) {
    return std::make_unique<ChosenMatrix<T>>(transport, std::move(choice), answer, form.rows, form.width,
                                             [served, replicated](bool factors) { return factors ? replicated() : served(); });
  }
  auto matrix = answer.factors ? replicated() : served();
  matrix->shared_as(answer.factors, answer.why);
  return matrix;
}

template std::unique_ptr<SharedMatrix<float>> share<float>(net::Transport&, table::Worker&, const MatrixForm&, const Sharing&,
                                                           const std::function<exchange::MatrixLoad()>&, Nanoseconds);
template std::unique_ptr<SharedMatrix<double>> share<double>(net::Transport&, table::Worker&, const MatrixForm&, const Sharing&,
                                                             const std::function<exchange::MatrixLoad()>&, Nanoseconds);

}  // namespace shoal::learn
