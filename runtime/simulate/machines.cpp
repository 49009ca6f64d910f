#include "runtime/simulate/machines.h"

namespace zero::simulate {
namespace {

struct Named {
  std::string_view name;
  Cluster cluster;
};

/// `link` is what a rank sends while all gather around a ring: the ring crosses each node's boundary once, with all of the node's network
/// adapters. Products take the part of the peak, and memory of the bandwidth, that zerorun was measured to reach on an H100 (docs/gpu.md):
/// 62 % of bf16's, 76 % of f32's, 53 % of the memory's.
const Named kMachines[] = {
    // DGX A100: NVIDIA's datasheet has 312 TFLOP/s of bf16 for a GPU, 156 of TF32, 19.5 of f32, 2.04 TB/s; for a node of 8 GPUs
    // 80 GB and an eighth of 2 TB, 8 adapters of 200 Gbit/s, 16 channels of DDR4-3200, 4 NVMe drives, PCIe 4.0, of which two GPUs share 16
    // lanes.
    {"a100",
     {.rank = {.productsF32 = 7.4e12,
               .productsTf32 = 4.7e13,
               .productsBf16 = 9.7e13,
               .memory = 1.08e12,
               .hostMemory = 4e10,
               .step = 4e-6,
               .link = 1.7e11,
               .linkLatency = 3e-5,
               .toDevice = 1.2e10,
               .toHost = 1.2e10,
               .diskRead = 3.2e9,
               .diskWrite = 1.7e9},
      .ranksPerNode = 8,
      .network = 1.7e11,
      .bytes = {8e10, 2.5e11}}},
    // DGX H100: products, memory and the way to the host as measured; memory as there, 8 adapters of 400 Gbit/s, 16 channels of DDR5-4800,
    // 8 NVMe drives.
    {"h100",
     {.rank = {.productsF32 = 2.55e13,
               .productsTf32 = 1.5e14,
               .productsBf16 = 3.05e14,
               .memory = 1.79e12,
               .hostMemory = 6e10,
               .step = 4e-6,
               .link = 3.4e11,
               .linkLatency = 3e-5,
               .toDevice = 4.5e10,
               .toHost = 4.5e10,
               .diskRead = 6.5e9,
               .diskWrite = 3.5e9},
      .ranksPerNode = 8,
      .network = 3.4e11,
      .bytes = {8e10, 2.5e11}}},
};

} // namespace

std::string machineNames() {
  std::string names;
  for (const Named &each : kMachines)
    names += (names.empty() ? "" : &each == std::end(kMachines) - 1 ? " and " : ", ") + std::string(each.name);
  return names;
}

const Cluster *clusterNamed(std::string_view name) {
  for (const Named &each : kMachines)
    if (each.name == name) return &each.cluster;
  return nullptr;
}

Machine defaultMachine(plan::Target::Kind kind, std::string_view level, uint64_t world) {
  if (kind == plan::Target::CUDA) return equalRank(*clusterNamed(level.starts_with("sm_9") ? "h100" : "a100"), world);
  Machine machine;
  if (level == "x86-64-v3") machine.productsF32 = machine.productsTf32 = 8e10, machine.productsBf16 = 6.5e10; // widened (half/products.h)
  return machine;
}

Machine defaultMachine(const plan::Target &target, uint64_t world) {
  bool cuda = target.kind() == plan::Target::CUDA && target.features_size() > 0;
  return defaultMachine(target.kind(), cuda ? target.features(0) : target.cpu(), world);
}

Cluster namedOrRead(const std::string &nameOrPath) {
  const Cluster *named = clusterNamed(nameOrPath);
  return named ? *named : readCluster(nameOrPath);
}

} // namespace zero::simulate
