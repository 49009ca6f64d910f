// Of programs that are carried to machines with GPUs (cmake/Portable.cmake).
#include "runtime/device/cuda/cuda_device.h"

namespace zero::runtime {

std::span<const DeviceKind> builtInDevices() {
  static constexpr DeviceKind kDevices[] = {{plan::Target::CUDA, "cuda", makeCudaDevice}};
  return kDevices;
}

} // namespace zero::runtime
