#include "shoal/exchange/flow.h"

#include <utility>

namespace shoal::exchange {

void Courier::start(const collective::Verified& program, const collective::Layout& layout, collective::Buffers buffers, const collective::Run& run,
                    net::Done done) {
  sent_ += elements_sent(program.program(), layout, runner_.rank()) * size_of(run.type);
  runner_.start(program, layout, buffers, run, std::move(done));
}

}  // namespace shoal::exchange
