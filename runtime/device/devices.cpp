#include "runtime/device/devices.h"
#include "runtime/plan/error.h"
#include "runtime/plan/target.h"

namespace zero::runtime {
namespace {

std::string builtIn() {
  std::string names;
  for (const DeviceKind &device : builtInDevices()) names += (names.empty() ? "" : " and ") + std::string(device.name);
  return names;
}

} // namespace

const DeviceKind &deviceFor(const plan::Target &target, const std::string &name) {
  for (const DeviceKind &device : builtInDevices())
    if (device.kind == target.kind()) return device;
  throw Error("'" + name + "' was compiled for " + plan::targetName(target.kind()) + ", and this zerorun runs plans for " + builtIn() +
              " only; compile with --target " + builtInDevices().front().name);
}

} // namespace zero::runtime
