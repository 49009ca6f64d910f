// The CPU as a device: arenas in huge pages, a pool of persistent threads, products from the BLAS library, kernels from
// the plan's shared object.
#pragma once
#include "runtime/device/device.h"
#include <memory>

namespace zero::runtime {

struct CpuOptions {
  int threads = 0;   // 0: the number of CPUs this process may use
  int ranksHere = 1; // ranks that share this machine's processors and memory
};

std::unique_ptr<Device> makeCpuDevice(const CpuOptions &options);

} // namespace zero::runtime
