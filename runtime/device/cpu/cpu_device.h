// The CPU as a device: arenas in huge pages, a pool of persistent threads, products from the BLAS library, kernels from
// the plan's shared object.
#pragma once
#include "runtime/device/devices.h"
#include <memory>

namespace zero::runtime {

std::unique_ptr<Device> makeCpuDevice(const DeviceOptions &options);

} // namespace zero::runtime
