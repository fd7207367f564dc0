// A forecast in words, and drawn. Pure: figures in, text out.
#pragma once

#include <string>

#include "shoal/exchange/plan_question.h"

namespace shoal::app {

using exchange::PlanAnswer;
using exchange::PlanQuestion;

std::string to_text(const PlanQuestion& question, const PlanAnswer& answer);
// Two charts in one picture: speed-up over members, and seconds of an iteration by each way.
std::string to_svg(const PlanQuestion& question, const PlanAnswer& answer);

}  // namespace shoal::app
