// What a unit costs on the link and in arithmetic, and what a plan's iteration costs with all of them. Pure.
#pragma once

#include "shoal/exchange/plan.h"
#include "shoal/exchange/way.h"

namespace shoal::exchange {

inline constexpr const char* kByRing = "ring";  // collective/build.h

// A sum of this type is rounded once by a program that folds, and by one that passes it on, such as a ring or a chain, at each step.
constexpr bool is_rounded_by_step(DType type) { return type == DType::f16 || type == DType::bf16; }

bool is_divided(const Unit& unit);  // Way::divides()
Load load_of(const ExchangePlan& plan, const Unit& unit);
Cost cost_of(const ExchangePlan& plan, const Unit& unit);

// Fills in what the plan predicts of each unit, in the plan's order, and returns the seconds of an iteration.
double price_units(ExchangePlan& plan);

// Of the products of others' rows, in an iteration of so many `seconds` (as price_units() says), those that waits hide; seconds. Where members share cores
// that are busy another computes while one waits, and they take its time.
double hidden_products(ExchangePlan plan, double seconds);

}  // namespace shoal::exchange
