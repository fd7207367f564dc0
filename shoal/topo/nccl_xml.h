// One machine as NCCL describes it to itself (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE; NVIDIA/nccl src/graph/topo.cc and topo.h, 2.2x).
//
//   <system><cpu numaid arch vendor familyid modelid>
//     <pci busid class link_speed link_width> more <pci>, or <gpu dev sm><nvlink target count tclass/></gpu>, or <nic><net name speed latency/></nic>
//
// GPUs become hosts; CPUs, PCIe bridges, NICs, nets and the NVSwitch become switches that forward. Rates, in GB/s each way:
//   NVLink      count x 18 (sm 60), 20 (70, 80), 12 (86), 20.6 (90), 40.1 (100)
//   PCIe        width x 0.1875, 0.375, 0.75, 1.5, 3, 6 for 2.5, 5, 8, 16, 32, 64 GT/s; 8 GT/s and x16 where the file is silent
//   CPU to CPU  6, 10, 22, 40 for Intel by model; 16 AMD, 6 ARM, 32 POWER, 6 Zhaoxin and others
//   net         its speed in Mbit/s / 8,000;  a NIC without a PCI address hangs on its CPU by 5,000
// Every two CPUs are linked, as in NCCL. NVLinks whose target is not there, and those from a GPU to itself, are left out with a note.
#pragma once

#include <string>

#include "shoal/topo/import.h"

namespace shoal::topo {

// Reads at most kMostImportBytes, 32 levels deep; entities are not expanded. Throws Error{invalid_argument}: "where: what".
Imported topology_from_nccl_xml(const std::string& text, const std::string& where);

}  // namespace shoal::topo
