// Which program for which collective, size and group, as a person wants it: rules that go before prices, in the manner of UCC's score maps.
//
//     SHOAL_TUNE='allreduce:1M-inf:@trees#allreduce:0-4K:[8-64]:@gather#allgather,reducescatter:@ring:inf#allreduce:@direct:0'
//
// Rules are separated by '#', their fields by ':'. The first is a collective, or several with commas; the others in any order:
//
//     @ring            a program; must be there
//     0-4K,1M-inf      sizes in bytes, both ends included; all if left out
//     [2-8,16]         numbers of members, both ends included; all if left out
//     50, inf          a score, 100 if left out: the highest that fits and can be had counts, among equals the later rule. 0: this program is not taken
//                      here at all. Of several rules that name one program the last that fits decides.
//
// UCC's memory types have no counterpart: programs move memory of hosts. A value; share across threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/collective/program.h"

namespace shoal::collective {

class Tuning {
 public:
  // Throws Error{invalid_argument} naming the rule and what is wrong with it; `where` is the variable or flag.
  explicit Tuning(std::string text, const std::string& where = "SHOAL_TUNE");

  const std::string& text() const { return text_; }

  struct Wish {
    std::string program;
    double score;  // 0: not this one
  };
  // Each program that rules name here, once, the most wanted first.
  std::vector<Wish> wishes(Collective collective, std::uint32_t ranks, double bytes) const;

 private:
  struct Range {
    double from, to;  // both included
  };
  struct Rule {
    std::vector<Collective> collectives;
    std::vector<Range> sizes, members;  // empty: all
    double score = 100;
    std::string program;
  };
  static Rule rule(const std::string& token);
  static bool fits(const std::vector<Range>& ranges, double value);

  std::string text_;
  std::vector<Rule> rules_;
};

}  // namespace shoal::collective
