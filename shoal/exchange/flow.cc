#include "shoal/exchange/flow.h"

#include <cassert>
#include <utility>

namespace shoal::exchange {

void Courier::start_among(collective::Runner& runner, const collective::Verified& program, const collective::Layout& layout,
                          collective::Buffers buffers, const collective::Run& run, net::Done done) {
  sent_ += elements_sent(program.program(), layout, runner.rank()) * size_of(run.type);
  runner.start(program, layout, buffers, run, std::move(done));
}

void Flow::give_back(const std::byte*, std::byte*, const collective::Run&, net::Done) {
  assert(false && "a way whose members step whole parameters");
}

}  // namespace shoal::exchange
