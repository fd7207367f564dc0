// Any bytes as a topology's JSON: as topo_gml.cc. Run fuzz_topo_json [corpus folder].
#include "fuzz/target.h"
#include "fuzz/topo_imported.h"

SHOAL_FUZZ(topo_json, data, size) {
  using namespace shoal::topo;
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_import([&] { return Imported{topology_from_json(text, "fuzz"), {}}; });
  return 0;
}
