// Of programs that are carried to machines with GPUs (cmake/Portable.cmake).
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/tuner.h"

namespace zero::runtime {

std::span<const DeviceKind> builtInDevices() {
  static constexpr DeviceKind kDevices[] = {{plan::Target::CUDA, "cuda", makeCudaDevice, cuda::tuneProducts}};
  return kDevices;
}

} // namespace zero::runtime
