#include "shoal/collective/verify.h"

#include <utility>

#include "shoal/collective/hazards.h"
#include "shoal/collective/sums.h"
#include "shoal/collective/unroll.h"
#include "shoal/collective/waits.h"

namespace shoal::collective {

Verified verify(Program program) {
  auto kept = std::make_shared<const Program>(std::move(program));
  const Unrolled unrolled = unroll(*kept);
  const Histories histories(unrolled, order_of(unrolled));
  const bool in_place = check_hazards(unrolled, histories);
  check_sums(unrolled, histories);
  return Verified(std::move(kept), in_place);
}

}  // namespace shoal::collective
