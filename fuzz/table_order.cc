// Any bytes as the file of an order that is to be kept to, behind its first line: what a run meets there is what it says, or one line; in either case the
// run comes to its end. Run fuzz_table_order [corpus folder].
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "fuzz/target.h"
#include "fuzz/temporary_folder.h"
#include "shoal/core/error.h"
#include "shoal/table/order.h"

SHOAL_FUZZ(table_order, data, size) {
  using namespace shoal;
  using table::Order;
  static const fuzz::TemporaryFolder folder;
  // The first byte: how much of the first line is the right one's.
  const std::string whose = "table f of rank 0";
  const std::string line = (whose + "\n").substr(0, size > 0 && data[0] < whose.size() ? data[0] : whose.size() + 1);
  std::ofstream(folder.path() / "order", std::ios::binary)
      << line << std::string(reinterpret_cast<const char*>(data), size).substr(size > 0);
  try {
    Order order({table::OrderKept::How::replay, folder.path()}, "order", whose);
    for (std::size_t events = 0; const auto next = order.next(); ++events) {
      if (events > size) std::abort();  // each has two bytes at least
      order.happens(*next);
      order.answer(events);
      order.now(Instant(std::chrono::microseconds(events)));
    }
    order.happens({1, 2});  // behind its end the run goes on freely
    if (order.answer(17) != 17) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
