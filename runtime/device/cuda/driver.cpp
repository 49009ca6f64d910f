#include "runtime/device/cuda/driver.h"
#include "runtime/base/error.h"
#include <array>
#include <utility>

namespace zero::runtime::cuda {
namespace {

constexpr int kOldest = 12000; // what runs the PTX that zeroc writes

std::string versionText(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

// What people can do something about; the rest goes by NVIDIA's name.
constexpr auto kMeanings = std::to_array<std::pair<Status, const char *>>({
    {2, "there is not enough memory"},
    {46, "the GPU is in use by another process alone, or not available"},
    {100, "this machine has no GPU that CUDA can use"},
    {214, "the GPU's memory failed (an ECC error); run again, and if it stays take the GPU out of service"},
    {218, "the driver refuses the PTX; compile the plan again"},
    {221, "the driver's compiler for PTX was not found (libnvidia-ptxjitcompiler.so.1); install the whole driver"},
    {222, "the driver is too old for the plan's PTX; install a newer driver"},
    {500, "it is not there"},
    {700, "a kernel reached outside of its memory"},
    {701, "a kernel needs more registers or shared memory than the GPU has"},
    {702, "a kernel took longer than the system allows"},
    {715, "a kernel holds an instruction that this GPU does not have"},
    {716, "a kernel used an address that is not aligned"},
    {719, "a kernel failed while it ran"},
    {802, "the system is not ready for CUDA; the fabric manager may not run"},
    {803, "the driver's library and its kernel module are of different versions; restart the machine"},
});

} // namespace

Driver::Driver() {
  Library library({"the CUDA driver",
                   {"libcuda.so.1"},
                   false,
                   "a plan for cuda needs a machine with an NVIDIA GPU and its driver; install the driver, or compile with --target cpu"});
  library.find(getErrorName, "cuGetErrorName");
  library.find(init, "cuInit");
  library.find(driverGetVersion, "cuDriverGetVersion");
  library.find(deviceGetCount, "cuDeviceGetCount");
  library.find(deviceGet, "cuDeviceGet");
  library.find(deviceGetName, "cuDeviceGetName");
  library.find(deviceGetAttribute, "cuDeviceGetAttribute");
  library.find(contextRetain, "cuDevicePrimaryCtxRetain");
  library.find(contextRelease, "cuDevicePrimaryCtxRelease_v2");
  library.find(contextSetCurrent, "cuCtxSetCurrent");
  library.find(contextGetDevice, "cuCtxGetDevice");
  library.find(memoryInfo, "cuMemGetInfo_v2");
  library.find(memoryAllocate, "cuMemAlloc_v2");
  library.find(memoryFree, "cuMemFree_v2");
  library.find(hostAllocate, "cuMemHostAlloc");
  library.find(hostFree, "cuMemFreeHost");
  library.find(hostRegister, "cuMemHostRegister_v2");
  library.find(hostUnregister, "cuMemHostUnregister");
  library.find(copyAsync, "cuMemcpyAsync");
  library.find(fill32Async, "cuMemsetD32Async");
  library.find(fill8Async, "cuMemsetD8Async");
  library.find(streamCreate, "cuStreamCreate");
  library.find(streamDestroy, "cuStreamDestroy_v2");
  library.find(streamSynchronize, "cuStreamSynchronize");
  library.find(streamWaitEvent, "cuStreamWaitEvent");
  library.find(streamWaitValue, "cuStreamWaitValue32_v2");
  library.find(eventCreate, "cuEventCreate");
  library.find(eventDestroy, "cuEventDestroy_v2");
  library.find(eventRecord, "cuEventRecord");
  library.find(eventSynchronize, "cuEventSynchronize");
  library.find(eventQuery, "cuEventQuery");
  library.find(eventElapsedTime, "cuEventElapsedTime");
  library.find(beginCapture, "cuStreamBeginCapture_v2");
  library.find(endCapture, "cuStreamEndCapture");
  library.find(graphInstantiate, "cuGraphInstantiateWithFlags");
  library.find(graphLaunch, "cuGraphLaunch");
  library.find(graphDestroy, "cuGraphDestroy");
  library.find(graphExecDestroy, "cuGraphExecDestroy");
  library.find(linkCreate, "cuLinkCreate_v2");
  library.find(linkAddData, "cuLinkAddData_v2");
  library.find(linkComplete, "cuLinkComplete");
  library.find(linkDestroy, "cuLinkDestroy");
  library.find(moduleLoad, "cuModuleLoadDataEx");
  library.find(moduleUnload, "cuModuleUnload");
  library.find(moduleGetFunction, "cuModuleGetFunction");
  library.find(moduleGetGlobal, "cuModuleGetGlobal_v2");
  library.find(functionSetAttribute, "cuFuncSetAttribute");
  library.find(launchKernel, "cuLaunchKernel");
  library.find(launchHostFunction, "cuLaunchHostFunc");
  int version = 0, devices = 0;
  require(driverGetVersion(&version), "cannot ask the CUDA driver for its version");
  if (version < kOldest)
    throw Error("the CUDA driver of this machine serves CUDA " + versionText(version) + ", and zerorun needs " + versionText(kOldest) +
                " or later; install a newer driver");
  require(init(0), "cannot start the CUDA driver");
  require(deviceGetCount(&devices), "cannot count this machine's GPUs");
  if (devices == 0) throw Error("this machine has a CUDA driver and no GPU that it can use (is CUDA_VISIBLE_DEVICES set?)");
}

const Driver &Driver::get() {
  static const Driver driver;
  return driver;
}

std::string Driver::sentence(Status status) const {
  const char *name = nullptr;
  std::string known = getErrorName(status, &name) == kSuccess && name ? name : "CUDA status " + std::to_string(status);
  for (auto [number, meaning] : kMeanings)
    if (number == status) return std::string(meaning) + " (" + known + ")";
  return "the CUDA driver says " + known;
}

void Driver::require(Status status, const std::string &what) const {
  if (status != kSuccess) throw Error(what + ": " + sentence(status));
}

} // namespace zero::runtime::cuda
