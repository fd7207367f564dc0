// Any bytes as a topology's JSON: as topo_gml.cc. Run fuzz_topo_json [corpus folder].
#include "fuzz/topo_imported.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shoal::topo;
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_import([&] { return Imported{topology_from_json(text, "fuzz"), {}}; });
  return 0;
}
