// What is remembered of a lab: one JSON file a lab, in /run/shoal/labs (where that cannot be written, in the
// user's own run-time folder).
#pragma once

#include <string>

#include "app/lab.h"

namespace shoal::app {

// Takes the name for this process; false if it is taken.
bool claim_lab(const std::string& name);
void save_lab(const Lab& lab);
bool forget_lab(const std::string& name);  // false if there was none

}  // namespace shoal::app
