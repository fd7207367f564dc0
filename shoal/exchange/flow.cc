#include "shoal/exchange/flow.h"

#include <utility>

namespace shoal::exchange {

void Courier::start_among(collective::Runner& runner, const collective::Verified& program, const collective::Layout& layout,
                          collective::Buffers buffers, const collective::Run& run, net::Done done) {
  sent_ += elements_sent(program.program(), layout, runner.rank()) * size_of(run.type);
  runner.start(program, layout, buffers, run, std::move(done));
}

}  // namespace shoal::exchange
