// Any bytes as NCCL topology XML: as topo_gml.cc. Run fuzz_topo_nccl_xml [corpus folder].
#include "fuzz/target.h"
#include "fuzz/topo_imported.h"

SHOAL_FUZZ(topo_nccl_xml, data, size) {
  using namespace shoal::topo;
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_import([&] { return topology_from_nccl_xml(text, "fuzz"); });
  return 0;
}
