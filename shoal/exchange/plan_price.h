// What a unit costs on the link and in arithmetic, and what a plan's iteration costs with all of them. Pure.
#pragma once

#include <string>

#include "shoal/exchange/plan.h"

namespace shoal::exchange {

// How a layer's factors travel: each part by the builder that its size suggests, the same in the price and on the wire.
struct Transfer {
  std::string way;
  double bytes = 0;  // of all members together
};
struct FactorTransfers {
  Transfer heads, rows;  // all-gathers, one after the other
  Transfer rest;         // an all-reduce, only of what no pair explains
};
FactorTransfers factor_transfers(const TensorSpec& tensor, std::uint32_t ranks, const collective::LinkModel& link);

struct UnitPrice {
  double link = 0;      // seconds
  double multiply = 0;  // seconds of this member's thread beyond its own backward pass (research/sync.md 1.4)
  double whole() const { return link + multiply; }
};
UnitPrice price_of(const ExchangePlan& plan, const Unit& unit);

// Fills in what the plan predicts of each unit, in the plan's order, and returns the seconds of an iteration.
double price_units(ExchangePlan& plan);

}  // namespace shoal::exchange
