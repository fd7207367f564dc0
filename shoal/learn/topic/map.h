// Topics as points of a plane, near each other where they have the same words: classical scaling (Torgerson, Psychometrika 1952) of the square root
// of the Jensen-Shannon divergence, which is a distance (Endres and Schindelin, IEEE Trans. Inf. Theory 2003). Threads: any.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "shoal/learn/topic/model.h"

namespace shoal::learn::topic {

using Point = std::array<double, 2>;

// Between the words of each two of these topics, row after row; 0 to ln 2. A topic's words are its most frequent 1,000. A topic without tokens is
// ln 2 from all others.
std::vector<double> divergences(const Model& model, std::span<const Topic> topics);

// Points whose squared distances are these as nearly as two dimensions allow; their mean is 0, the first axis is the longer. squares: symmetric,
// row after row, of `count` points.
std::vector<Point> scaled(std::span<const double> squares, std::size_t count);

}  // namespace shoal::learn::topic
