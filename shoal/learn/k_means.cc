#include "shoal/learn/k_means.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"
#include "shoal/core/time.h"
#include "shoal/learn/memory.h"
#include "shoal/learn/rows.h"

namespace shoal::learn {
namespace {

constexpr std::uint32_t kRace = 0x6b6d'0000;    // site of random numbers (core/seed.h)

const KMeansOptions& checked(const KMeansOptions& options, const LabelledRows& rows) {
  const auto refuse = [](const std::string& what) { throw Error(Code::invalid_argument, what, "clusters"); };
  if (options.clusters < 1 || options.clusters > 1 << 20) refuse(std::to_string(options.clusters) + " is not between 1 and 1048576");
  if (options.clusters > rows.count) refuse(std::to_string(options.clusters) + " are more than the " + std::to_string(rows.count) + " samples");
  need_memory(1.0 * rows.columns * options.clusters * (sizeof(float) + 2 * sizeof(std::int64_t)),
              std::to_string(options.clusters) + " clusters of " + std::to_string(rows.columns) + " columns");
  return options;
}

// As many bits behind the point as leave room for the sum of all samples.
int shift_for(const LabelledRows& rows) {
  if (rows.largest == 0) return 0;
  return 61 - std::ilogb(rows.largest) - std::ilogb(static_cast<double>(rows.count)) - 1;
}

}  // namespace

KMeans::KMeans(net::Transport& transport, LabelledRows rows, const KMeansOptions& options, const table::TablesOptions& tables)
    : options_(checked(options, rows)), rows_(std::move(rows)), shift_(shift_for(rows_)), tables_(transport, tables), worker_(tables_.worker()),
      cluster_sums_(worker_.open<std::int64_t>({.name = "clusters", .width = options.clusters, .consistency = table::Bsp{}, .initial = {}})),
      starts_(worker_.open<float>({.name = "starts", .width = rows_.columns, .consistency = table::Bsp{}, .initial = {}})), sums_(worker_, "sums", 2),
      offers_(worker_, "offers", 2 * std::size_t{rows_.members}), centers_(options.clusters, rows_.columns),
      cluster_(rows_.own.size(), options.clusters), distance_(rows_.own.size(), std::numeric_limits<double>::infinity()), touched_(rows_.columns) {}

// --- the first centers

// The largest offer of all members; none where nobody has one. Each member's stands in numbers of its own, so their sum is all of them.
std::optional<KMeans::Offer> KMeans::choose(const std::optional<Offer>& own) {
  std::vector<double> all(2 * std::size_t{rows_.members});
  if (own) {
    all[2 * rows_.member] = own->weight;
    all[2 * rows_.member + 1] = own->number;
  }
  all = offers_.sum(all);
  std::optional<Offer> best;
  for (std::size_t member = 0; member < rows_.members; ++member) {
    const Offer offer{all[2 * member], static_cast<std::uint32_t>(all[2 * member + 1])};
    if (offer.weight == 0) continue;
    if (!best || offer.weight > best->weight || (offer.weight == best->weight && offer.number < best->number)) best = offer;
  }
  if (best && own && best->number == own->number) best->own = own->own;
  return best;
}

// Sample i ends a race after E_i / w_i, E_i of the exponential distribution: it is first with a chance in proportion to w_i. Its weight in choose() is one over that.
void KMeans::begin_centers() {
  std::vector<double> nearest(rows_.own.size(), 1.0);  // squared distance to the nearest center; all alike where there is none
  std::vector<float> center(rows_.columns);
  for (std::uint32_t cluster = 0; cluster < options_.clusters; ++cluster) {
    std::optional<Offer> own;
    for (std::uint32_t i = 0; i < nearest.size(); ++i) {
      if (nearest[i] == 0) continue;
      const double time = -std::log1p(-uniform(options_.seed, rows_.numbers[i], cluster, kRace)) / nearest[i];
      const double weight = 1 / std::max(time, std::numeric_limits<double>::min());
      if (!own || weight > own->weight) own = Offer{weight, rows_.numbers[i], i};
    }
    const auto chosen = choose(own);
    if (!chosen) {
      throw Error(Code::invalid_argument, "there are only " + std::to_string(cluster) + " different samples", "clusters", "ask for no more clusters");
    }
    const table::Key key = cluster;
    std::fill(center.begin(), center.end(), 0.0f);
    if (chosen->own) {
      const data::SparseRow row = rows_.own[*chosen->own];
      for (std::size_t k = 0; k < row.columns.size(); ++k) center[row.columns[k]] = row.values[k];
      starts_.add({&key, 1}, center);
    }
    starts_.barrier();
    starts_.read({&key, 1}, center);
    const double norm = data::squared_norm(center);
    for (std::uint32_t c = 0; c < rows_.columns; ++c) centers_.column(c)[cluster] = center[c];
    for (std::uint32_t i = 0; i < nearest.size(); ++i) {
      const data::SparseRow row = rows_.own[i];
      double product = 0;
      for (std::size_t k = 0; k < row.columns.size(); ++k) product += double{row.values[k]} * center[row.columns[k]];
      const double distance = std::max(norm - 2 * product + data::squared_norm(row.values), 0.0);
      nearest[i] = cluster == 0 ? distance : std::min(nearest[i], distance);
    }
  }
  centers_.changed();
}

// --- an epoch

Epoch KMeans::learn(const std::function<void(double part)>& progressed) {
  const Instant begin = steady_now();
  waited_ = 0;
  if (epochs_ == 0 && !has_first_) begin_centers();
  const double distances = assign(progressed);
  const Instant meeting = steady_now();
  cluster_sums_.barrier();
  fill_empty();
  const double shift = renew();
  ++epochs_;
  waited_ += seconds_between(meeting, steady_now());
  double held_out = 0;
  for (std::size_t i = 0; i < rows_.own_held_out.size(); ++i) held_out += centers_.nearest(rows_.own_held_out[i]).squared_distance;
  const Instant summing = steady_now();
  const auto sums = sums_.sum({distances, held_out});
  const Instant end = steady_now();
  Epoch epoch{.number = epochs_, .figures = {{"mean squared distance", sums[0] / rows_.count}, {"shift", shift}}, .samples = rows_.count,
              .seconds = seconds_between(begin, end), .waited = waited_ + seconds_between(summing, end), .converged = shift == 0};
  if (rows_.held_out > 0) epoch.figures.emplace_back("held-out mean squared distance", sums[1] / rows_.held_out);
  return epoch;
}

// Each own sample to its nearest center. The sum of squared distances.
double KMeans::assign(const std::function<void(double part)>& progressed) {
  double distances = 0;
  std::vector<std::uint32_t> numbers, clusters;
  const auto own = static_cast<std::uint32_t>(rows_.own.size());
  for (std::uint32_t from = 0; from < own; from += kRowsAtOnce) {
    numbers.clear();
    clusters.clear();
    for (std::uint32_t i = from; i < std::min(from + kRowsAtOnce, own); ++i) {
      const auto [cluster, distance] = centers_.nearest(rows_.own[i]);
      distances += distance_[i] = distance;
      if (cluster == cluster_[i]) continue;
      numbers.push_back(i);
      clusters.push_back(cluster);
    }
    touched_.collect(rows_.own, numbers);
    changes_.assign(touched_.keys().size() * options_.clusters, 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) move(numbers[i], clusters[i]);
    if (!numbers.empty()) cluster_sums_.add(touched_.keys(), changes_);
    progressed(std::min(1.0, static_cast<double>(from + kRowsAtOnce) / own));
  }
  return distances;
}

// In changes_, by columns that touched_ has.
void KMeans::move(std::uint32_t sample, std::uint32_t cluster) {
  const std::uint32_t before = std::exchange(cluster_[sample], cluster);
  const data::SparseRow row = rows_.own[sample];
  const auto change = [&](std::size_t place, std::int64_t value) {
    std::int64_t* changes = &changes_[place * options_.clusters];
    if (before < options_.clusters) changes[before] -= value;
    changes[cluster] += value;
  };
  for (std::size_t k = 0; k < row.columns.size(); ++k) change(touched_.place(row.columns[k]), std::llrint(std::ldexp(double{row.values[k]}, shift_)));
  change(touched_.ones(), 1);
}

void KMeans::fill_empty() {
  const table::Key counts_key = rows_.columns;
  std::vector<std::int64_t> counts(options_.clusters);
  for (std::uint32_t filled = 0; filled < options_.clusters; ++filled) {
    cluster_sums_.read({&counts_key, 1}, counts);
    const auto empty = std::find(counts.begin(), counts.end(), 0);
    if (empty == counts.end()) return;
    std::optional<Offer> own;
    for (std::uint32_t i = 0; i < distance_.size(); ++i) {
      if (distance_[i] > 0 && counts[cluster_[i]] > 1 && (!own || distance_[i] > own->weight)) own = Offer{distance_[i], rows_.numbers[i], i};
    }
    const auto chosen = choose(own);
    if (!chosen) return;  // every sample is its center: the cluster stays where it is
    if (chosen->own) {
      touched_.collect(rows_.own, {&*chosen->own, 1});
      changes_.assign(touched_.keys().size() * options_.clusters, 0);
      move(*chosen->own, static_cast<std::uint32_t>(empty - counts.begin()));
      distance_[*chosen->own] = 0;
      cluster_sums_.add(touched_.keys(), changes_);
    }
    cluster_sums_.barrier();
  }
}

// Each center is the mean of its samples; that of an empty cluster stays. Returns the root of the squares by which they moved.
double KMeans::renew() {
  double squares = 0;
  const table::Key counts_key = rows_.columns;
  std::vector<std::int64_t> counts(options_.clusters), sums(std::size_t{rows_.columns} * options_.clusters);
  cluster_sums_.read({&counts_key, 1}, counts);
  read_rows(cluster_sums_, {0, rows_.columns}, sums);
  for (std::uint32_t c = 0; c < rows_.columns; ++c) {
    const std::span<float> center = centers_.column(c);
    for (std::uint32_t j = 0; j < options_.clusters; ++j) {
      if (counts[j] == 0) continue;
      const double mean = static_cast<double>(sums[std::size_t{c} * options_.clusters + j]) / static_cast<double>(counts[j]);
      const double before = std::exchange(center[j], static_cast<float>(std::ldexp(mean, -shift_)));
      squares += (center[j] - before) * (center[j] - before);
    }
  }
  centers_.changed();
  return std::sqrt(squares);
}

// --- models

Tensors KMeans::model() {
  Tensors model;
  if (rows_.member == 0) model.emplace("centers", centers_.tensor());
  cluster_sums_.barrier();  // nobody leaves whose rows others have not read
  return model;
}

void KMeans::begin_with(const Tensors& first) {
  Tensor centers{{options_.clusters, rows_.columns}, std::vector<float>(std::size_t{options_.clusters} * rows_.columns)};
  if (rows_.member == 0) {
    centers = tensor_of(first, "centers", centers.shape);
    assign_rows(starts_, KeyRange{0, options_.clusters}, centers.values);
  }
  starts_.barrier();
  read_rows(starts_, {0, options_.clusters}, centers.values);
  centers_.set(centers);
  has_first_ = true;
}

unsigned KMeans::restore(unsigned epochs, const Tensors& model) {
  epochs_ = static_cast<unsigned>(sums_.sum({rows_.member == 0 ? static_cast<double>(epochs) : 0, 0})[0]);
  if (epochs_ > 0) begin_with(model);
  return epochs_;
}

}  // namespace shoal::learn
