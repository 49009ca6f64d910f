#include "runtime/device/devices.h"
#include "runtime/base/error.h"
#include "runtime/plan/target.h"
#include "runtime/process/processors.h"
#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace zero::runtime {
namespace {

std::string builtIn() {
  std::string names;
  for (const DeviceKind &device : builtInDevices()) names += (names.empty() ? "" : " and ") + std::string(device.name);
  return names;
}

int online() { return static_cast<int>(std::thread::hardware_concurrency()); }

} // namespace

int threadsOf(const DeviceOptions &options) {
  if (options.threads < 0 || options.threads > 4096)
    throw Error("cannot run with " + std::to_string(options.threads) + " threads; give --threads a number from 1 to 4096");
  if (options.threads) return options.threads;
  const Neighbours &neighbours = options.neighbours;
  double mine = neighbours.processors > 0 ? neighbours.processors + 1e-6 : double(online()) / neighbours.all; // a sum of fractions
  // A control group limits processors' time, which the ranks of a container have together.
  if (processors() < boundProcessors()) mine = std::min(mine, double(processors()) / neighbours.container);
  return std::max(1, static_cast<int>(mine));
}

std::string noteOnProcessors(const DeviceOptions &options) {
  const Neighbours &neighbours = options.neighbours;
  double fair = double(online()) / neighbours.all;
  if (options.world == 1 || neighbours.processors == 0 || 2 * neighbours.processors > fair) return "";
  return fmt::format("rank {} is bound to {} of this machine's {} processors, where an even share among its {} ranks would be {}; mpirun "
                     "--bind-to none lifts that, and Slurm gives more with --cpus-per-task",
                     options.rank, std::max(1, static_cast<int>(neighbours.processors + 1e-6)), online(), neighbours.all,
                     static_cast<int>(fair));
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
