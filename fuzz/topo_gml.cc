// Any bytes as GML: a network that its JSON gives back and that can be counted and, unless too big, drawn, or a refusal in one line. Run
// fuzz_topo_gml [corpus folder].
#include "fuzz/target.h"
#include "fuzz/topo_imported.h"

SHOAL_FUZZ(topo_gml, data, size) {
  using namespace shoal::topo;
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_import([&] { return topology_from_gml(text, "fuzz", {}); });
  check_import([&] { return topology_from_gml(text, "fuzz", {125e6}); });
  return 0;
}
