#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/tuner.h"

namespace zero::runtime {

std::span<const DeviceKind> builtInDevices() {
  static constexpr DeviceKind kDevices[] = {
      {plan::Target::CPU, "cpu", makeCpuDevice},
      {plan::Target::CUDA, "cuda", makeCudaDevice, cuda::tuneProducts},
  };
  return kDevices;
}

} // namespace zero::runtime
