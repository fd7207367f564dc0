// What a unit makes its members send in one iteration, by its way: programs by name, with their sizes. Of its legs a way is priced (way.h), and by them
// it is simulated (sim/plan_traffic.h); that flows send just this is what tests/exchange/legs.cc holds them to. Values; no threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shoal/collective/layout.h"
#include "shoal/collective/link_model.h"
#include "shoal/collective/program.h"

namespace shoal::exchange {

struct Leg {
  enum class When : std::uint8_t {
    forward,   // in the middle of the forward pass, which waits for it
    backward,  // likewise of the backward pass
    mean,      // once the gradient is there
    after,     // once the optimizer has stepped, before the parameter's next use
  };
  When when = When::mean;
  collective::Collective collective = collective::Collective::all_reduce;
  std::string program = {};             // a builder's, the known network's, or that of servers (served_by())
  std::uint64_t elements = 0;           // of the whole vector, as collective::price() counts it
  std::uint64_t element_bytes = 1;
  std::vector<std::uint64_t> chunks = {};   // elements, where the program's are not cut as Layout::even cuts them
  std::vector<std::uint32_t> members = {};  // ranks that run it, ascending; empty: all
  bool beside = false;                  // it runs at the same time as the one in front of it, among others; else behind that one
  double wire_share = 1;                // the share of its bytes that they take on a link

  double bytes() const { return static_cast<double>(elements * element_bytes); }
  std::uint32_t size(std::uint32_t ranks) const { return members.empty() ? ranks : static_cast<std::uint32_t>(members.size()); }
};

// Seconds on an otherwise idle link of those legs that begin at `when`, and the bytes that the busiest member sends in all of them.
double seconds(const std::vector<Leg>& legs, Leg::When when, std::uint32_t ranks, const collective::LinkModel& link);
double busiest_bytes(const std::vector<Leg>& legs, std::uint32_t ranks);

// The program of a leg among so many; network: the plan's, nullptr if nothing is known of it.
collective::Program program_of(const Leg& leg, std::uint32_t ranks, const collective::KnownNetwork* network);
// How its elements are cut.
collective::Layout layout_of(const Leg& leg, const collective::Program& program, std::uint32_t rank);

}  // namespace shoal::exchange
