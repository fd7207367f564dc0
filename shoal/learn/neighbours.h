// Whether samples of one class are near each other: how often the nearest have a sample's class, and how often pairs of one class are nearer than
// those of two. Pure functions but for Distances, each of which belongs to one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "shoal/data/sparse_rows.h"

namespace shoal::learn {

float squared_distance(std::span<const float> a, std::span<const float> b);

// From a sample, by number, to each of those whose classes are known.
using Distances = std::function<void(std::size_t sample, std::span<float> squared)>;
// Between points of so many coordinates, one behind the other; between rows as they are. Both outlive it.
Distances distances(std::span<const float> samples, std::span<const float> known, std::size_t dimensions);
Distances distances(const data::SparseRows& samples, const data::SparseRows& known);

// The class of most of the `k` nearest, of several the one of the nearest; `except`: one that does not count. NaN where there is nobody.
double vote(std::span<const float> squared, std::span<const double> classes, std::size_t k, std::optional<std::size_t> except = {});
// Of `classes.size()` samples, how many have the class that their k nearest of the known vote for.
std::size_t rightly_voted(const Distances& distances, std::span<const double> classes, std::span<const double> known, std::size_t k);
// The same among themselves: of each the k nearest others.
std::size_t rightly_voted(const Distances& distances, std::span<const double> classes, std::size_t k);
// Of all pairs among themselves: the chance that one of one class is nearer than one of two (the area under the ROC curve; equal distances count
// half). NaN where there are no such pairs.
double pair_auc(const Distances& distances, std::span<const double> classes);

}  // namespace shoal::learn
