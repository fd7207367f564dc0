// What is refused, and in which words.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "shoal/core/error.h"

namespace shoal {

// The line of the Error that `act` throws, which is of this code; "nothing was refused" if it throws none.
inline std::string refusal(const std::function<void()>& act, Code code = Code::invalid_argument) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace shoal
