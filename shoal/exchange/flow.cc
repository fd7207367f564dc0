#include "shoal/exchange/flow.h"

#include <utility>

#include "shoal/core/error.h"

namespace shoal::exchange {

void Courier::start_among(collective::Runner& runner, const collective::Verified& program, const collective::Layout& layout,
                          collective::Buffers buffers, const collective::Run& run, net::Done done) {
  sent_ += elements_sent(program.program(), layout, runner.rank()) * size_of(run.type);
  runner.start(program, layout, buffers, run, std::move(done));
}

net::Failure Courier::mismatch(std::size_t place, const std::string& said) const {
  return std::make_shared<Error>(Code::mismatch, "rank " + std::to_string(runner_.members()[place]) + " has " + said, "exchange",
                                 "run the same code on every member");
}

}  // namespace shoal::exchange
