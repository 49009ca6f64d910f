#include "runtime/device/devices.h"
#include "runtime/plan/error.h"
#include "runtime/plan/target.h"
#include "runtime/process/processors.h"
#include <algorithm>
#include <sched.h>
#include <thread>

namespace zero::runtime {
namespace {

std::string builtIn() {
  std::string names;
  for (const DeviceKind &device : builtInDevices()) names += (names.empty() ? "" : " and ") + std::string(device.name);
  return names;
}

} // namespace

int threadsOf(const DeviceOptions &options) {
  if (options.threads < 0 || options.threads > 4096)
    throw Error("cannot run with " + std::to_string(options.threads) + " threads; give --threads a number from 1 to 4096");
  if (options.threads) return options.threads;
  cpu_set_t set;
  CPU_ZERO(&set);
  int online = static_cast<int>(std::thread::hardware_concurrency());
  int allowed = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : online; // more than the set holds
  int mine = allowed < online ? allowed : allowed / options.ranksHere, given = static_cast<int>(processors());
  if (given < allowed) mine = std::min(mine, given / options.ranksHere); // by a control group, which the ranks of a container share
  return std::max(1, mine);
}

void Device::loadHostKernels(std::span<const std::byte>, std::span<const KernelSymbol>, const plan::Target &) {
  throw Error("the plan has kernels for the host beside those for its device, which is the host itself: this is an error in zerorun");
}

HostMemory Device::hostMemory(uint64_t bytes) { return HostMemory(new std::byte[bytes]()); }

const DeviceKind &deviceFor(const plan::Target &target, const std::string &name) {
  for (const DeviceKind &device : builtInDevices())
    if (device.kind == target.kind()) return device;
  throw Error("'" + name + "' was compiled for " + plan::targetName(target.kind()) + ", and this zerorun runs plans for " + builtIn() +
              " only; compile with --target " + builtInDevices().front().name);
}

} // namespace zero::runtime
