#include "runtime/device/cuda/handles.h"

namespace zero::runtime::cuda {

OwnedStream makeStream() {
  const Driver &driver = Driver::get();
  StreamHandle made{};
  driver.require(driver.streamCreate(&made, kNonBlocking), "cannot make a CUDA stream");
  return {made, driver.streamDestroy};
}

OwnedEvent makeEvent(unsigned flags) {
  const Driver &driver = Driver::get();
  EventHandle made{};
  driver.require(driver.eventCreate(&made, flags), "cannot make a CUDA event");
  return {made, driver.eventDestroy};
}

DeviceMemory allocateDevice(uint64_t bytes, const std::string &what) {
  const Driver &driver = Driver::get();
  Pointer made{};
  driver.require(driver.memoryAllocate(&made, bytes), "cannot allocate " + std::to_string(bytes) + " bytes on the GPU for " + what);
  return {made, driver.memoryFree};
}

PinnedMemory allocatePinned(uint64_t bytes, const std::string &what) {
  const Driver &driver = Driver::get();
  void *made = nullptr;
  driver.require(driver.hostAllocate(&made, bytes, kPortable),
                 "cannot allocate " + std::to_string(bytes) + " bytes of pinned host memory for " + what);
  return {made, driver.hostFree};
}

PinnedMemory pin(void *memory, uint64_t bytes, const std::string &what) {
  const Driver &driver = Driver::get();
  driver.require(driver.hostRegister(memory, bytes, kPortable),
                 "cannot pin " + std::to_string(bytes) + " bytes of host memory for " + what);
  return {memory, driver.hostUnregister};
}

} // namespace zero::runtime::cuda
