// Which program for which collective and size, as a person wants it: rules that go before prices, in the manner of UCC's score maps.
//
//     SHOAL_TUNE='allreduce:1M-inf:@trees#allreduce:0-4K:@gather#allgather:@ring'
//
// Rules are separated by '#', their fields by ':': a collective, sizes in bytes from-to (both included; all if left out), and '@' with a
// program. Of several rules that fit, the last one counts. A value; share across threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shoal/collective/program.h"

namespace shoal::collective {

class Tuning {
 public:
  // Throws Error{invalid_argument} naming the rule and what is wrong with it; `where` is the variable or flag.
  explicit Tuning(std::string text, const std::string& where = "SHOAL_TUNE");

  const std::string& text() const { return text_; }
  std::optional<std::string> wish(Collective collective, double bytes) const;

 private:
  struct Rule {
    Collective collective;
    double from, to;
    std::string program;
  };
  std::string text_;
  std::vector<Rule> rules_;
};

}  // namespace shoal::collective
