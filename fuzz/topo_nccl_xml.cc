// Any bytes as NCCL topology XML: as topo_gml.cc. Run fuzz_topo_nccl_xml [corpus folder].
#include "fuzz/topo_imported.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shoal::topo;
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_import([&] { return topology_from_nccl_xml(text, "fuzz"); });
  return 0;
}
