// DataParallel on members that take part in iterations without data of their own: those that have run out of it (join), and those that only serve.
#include "shoal/nn/data_parallel.h"

namespace shoal::nn {

bool DataParallel::idle_iteration() {
  if (open_) complete();
  multiply_all_held();
  behind_ = Behind::unknown;
  begin(0);
  account_rest();
  const bool somebody_has_data = buffers_.start(exchange_->weights());
  finish_buffers();
  close_iteration();
  return somebody_has_data;
}

// While anybody has data nobody is dismissed: a worker that ends before the others is lost to them, and to the servers.
bool DataParallel::serve() { return idle_iteration() || !over_; }

void DataParallel::dismiss_servers() {
  dismisses_ = true;
  idle_iteration();
}

void DataParallel::end() {
  for (const auto& [groups, group] : layer_groups_) group->end_round();  // who calls a layer of the next pass first
  if (exchange_) exchange_->end();
}

}  // namespace shoal::nn
