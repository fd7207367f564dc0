// A program outside the project: joins the run and adds its rank + 1 over all members. Prints the sum.
#include <cstdio>
#include <numeric>

#include "shoal/collective/build.h"
#include "shoal/collective/run.h"
#include "shoal/collective/verify.h"
#include "shoal/net/job.h"

int main() {
  using namespace shoal;
  const auto job = net::join();
  const net::Rank size = job->place().size;
  std::vector<net::Rank> members(size);
  std::iota(members.begin(), members.end(), 0u);
  const auto program = collective::verify(collective::build(collective::Collective::all_reduce, "ring", size));
  collective::Runner runner(job->transport(), members);
  const float mine = static_cast<float>(job->place().rank + 1);
  float sum = 0;
  collective::Run run;
  run.operation = net::operation_in(1, 1);
  run.label = "sum of ranks";
  runner.run(program, collective::Layout::even(program.program(), runner.rank(), 1),
             {reinterpret_cast<const std::byte*>(&mine), reinterpret_cast<std::byte*>(&sum)}, run,
             job->transport().now() + std::chrono::seconds(60));
  std::printf("%g\n", sum);
}
