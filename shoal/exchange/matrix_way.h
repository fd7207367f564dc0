// How members should share a matrix W that all of them change each clock by sums of outer products with sparse factors (factor/outer.h):
//
//   rows      of a table: each member pushes the rows that its factors touch, summed, and pulls those that it needs (sparse parameter server)
//   all rows  the same with every row of W (dense parameter server): nobody here does it, for people to compare
//   factors   every member has all of W and hears of the others' factors (replica/replica.h)
//
// The fewer numbers are not always the shorter time: what factors save on the wire everybody pays for in arithmetic (Xie et al.,
// UAI 2016, section 3, with a term for the multiplication). Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "shoal/collective/select.h"

namespace shoal::exchange {

struct MatrixLoad {          // what one member does in a clock, on average
  double vectors = 0;        // K
  double entries = 0;        // numbers of its x that are not zero
  double touched = 0;        // rows of W that these touch
  double changed = 0;        // rows of W that all members' touch
  double rows = 0;           // of W
  double width = 0;          // numbers in a row
  double element_bytes = 4;
  bool pushed = false;       // servers push what changed (eager SSP), to who has read it before
};

enum class MatrixWay : std::uint8_t { rows, all_rows, factors };
std::string name(MatrixWay way);  // "rows", "all rows", "factors"

struct MatrixPrice {
  MatrixWay way = MatrixWay::rows;
  double seconds = 0;        // of a clock, beyond the member's own learning
  double sent = 0;           // bytes, by one member
};

// multiply_rate: floating-point operations/s of one member that adds factors to rows.
MatrixPrice price(MatrixWay way, const MatrixLoad& load, std::uint32_t ranks, const collective::LinkModel& link, double multiply_rate);
// The cheapest first.
std::array<MatrixPrice, 3> prices(const MatrixLoad& load, std::uint32_t ranks, const collective::LinkModel& link, double multiply_rate);

}  // namespace shoal::exchange
