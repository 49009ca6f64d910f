// A Device on an NVIDIA GPU, through the driver and cuBLASLt, which are opened when one is made.
#pragma once
#include "runtime/device/devices.h"

namespace zero::runtime {

// Throws a sentence if this machine has no GPU, no driver, or too old a one.
std::unique_ptr<Device> makeCudaDevice(const DeviceOptions &options);

} // namespace zero::runtime
