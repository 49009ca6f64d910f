#include "runtime/device/devices.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/plan/error.h"
#include "runtime/plan/target.h"
#include <algorithm>

namespace zero::runtime {
namespace {

constexpr DeviceKind kDevices[] = {
    {plan::Target::CPU, "cpu", makeCpuDevice},
    {plan::Target::CUDA, "cuda", makeCudaDevice},
};

std::string builtIn() {
  std::string names;
  for (const DeviceKind &device : kDevices) names += (names.empty() ? "" : " and ") + std::string(device.name);
  return names;
}

} // namespace

const DeviceKind &deviceFor(const plan::Target &target, const std::string &name) {
  auto found = std::find_if(std::begin(kDevices), std::end(kDevices), [&](const DeviceKind &d) { return d.kind == target.kind(); });
  if (found != std::end(kDevices)) return *found;
  throw Error("'" + name + "' was compiled for " + plan::targetName(target.kind()) + ", and this zerorun runs plans for " + builtIn() +
              " only; compile with --target " + kDevices[0].name);
}

} // namespace zero::runtime
