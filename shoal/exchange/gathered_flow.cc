#include "shoal/exchange/gathered_flow.h"

#include <utility>

#include "shoal/core/error.h"

namespace shoal::exchange {

GatheredFlow::GatheredFlow(const Road& road, const TensorSpec& tensor, const RowTransfers& by, std::vector<RowGather::Column> columns,
                           const collective::Verified& adding)
    : Flow(road.runner), type_(tensor.type), count_(tensor.count), adding_(adding), gather_(courier(), road.programs, by, std::move(columns)) {}

void GatheredFlow::gather(const Departure& departure, RowGather::Own own, net::Done done) {
  run_ = departure.run;
  done_ = std::move(done);
  failure_ = nullptr;
  waiting_ = 1;
  gather_.start(std::move(own), run_,
                [this] {
                  try {
                    return counted();
                  } catch (const Error& error) {
                    failure_ = std::make_shared<Error>(error);
                    courier().runner().transport().fail(error);
                    return false;
                  }
                },
                [this](const net::Failure& why) { part_arrived(why); });
}

void GatheredFlow::add_whole(const std::byte* own, std::byte* sum) {
  if (!own) own = zeros_.get(count_ * size_of(type_));
  collective::Run run = run_;
  run.operation += gather_.operations();
  ++waiting_;
  courier().start(adding_, collective::Layout::even(adding_.program(), courier().runner().rank(), count_), {own, sum}, run,
                  [this](const net::Failure& why) { part_arrived(why); });
}

void GatheredFlow::part_arrived(const net::Failure& why) {
  if (why && !failure_) failure_ = why;
  if (--waiting_ > 0) return;
  if (!failure_) failure_ = arrived();
  std::exchange(done_, nullptr)(failure_);
}

}  // namespace shoal::exchange
