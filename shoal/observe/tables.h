// An account as text for a terminal: aligned columns, no colour, lines that end in a line break. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "shoal/observe/account.h"

namespace shoal::observe {

// Per member and their mean: where the time went, in seconds and shares. Below it a line for each thing they noted.
std::string time_table(const Account& account);
std::string tensor_table(const Account& account, std::size_t most_rows = 40);  // where there are more, the most exposed
std::string link_table(const Account& account);    // MB/s from each member to each

}  // namespace shoal::observe
