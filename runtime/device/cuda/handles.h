// What the driver gives out, held by one owner each and given back when that ends.
#pragma once
#include "runtime/device/cuda/driver.h"
#include <cstdint>
#include <utility>

namespace zero::runtime::cuda {

// A handle and the function of the driver that gives it back. That cannot be refused in a way that anybody could do something about.
template <typename Handle> class Owned {
public:
  Owned() = default;
  Owned(Handle handle, Status (*giveBack)(Handle)) : handle(handle), giveBack(giveBack) {}
  ~Owned() { reset(); }
  Owned(Owned &&other) noexcept : handle(std::exchange(other.handle, {})), giveBack(other.giveBack) {}
  Owned &operator=(Owned &&other) noexcept {
    std::swap(handle, other.handle), std::swap(giveBack, other.giveBack);
    return *this;
  }

  Handle get() const { return handle; }
  explicit operator bool() const { return handle != Handle{}; }
  void reset() {
    if (Handle old = std::exchange(handle, {})) giveBack(old);
  }

private:
  Handle handle{};
  Status (*giveBack)(Handle) = nullptr;
};

using OwnedStream = Owned<StreamHandle>;
using OwnedEvent = Owned<EventHandle>;
using OwnedModule = Owned<ModuleHandle>;
using OwnedLink = Owned<LinkHandle>;
using OwnedGraph = Owned<GraphHandle>;
using OwnedGraphExec = Owned<GraphExecHandle>;
using DeviceMemory = Owned<Pointer>;
using PinnedMemory = Owned<void *>;

OwnedStream makeStream();
OwnedEvent makeEvent(unsigned flags); // kTimed or kUntimed

// Throw "cannot … for WHAT: why".
DeviceMemory allocateDevice(uint64_t bytes, const std::string &what);
PinnedMemory allocatePinned(uint64_t bytes, const std::string &what);
// Memory that is there already, for as long as the handle lives.
PinnedMemory pin(void *memory, uint64_t bytes, const std::string &what);

// Memory of the host that the device reaches, by its address there.
inline Pointer pointerTo(const void *host) { return reinterpret_cast<uintptr_t>(host); }

} // namespace zero::runtime::cuda
