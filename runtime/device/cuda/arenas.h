// Arenas in the memory of the GPU and, pinned so that the GPU reaches it, of the host; and what goes in and out of them from outside.
#pragma once
#include "runtime/comm/neighbours.h"
#include "runtime/device/cpu/memory.h"
#include "runtime/device/cuda/gpu.h"
#include "runtime/device/cuda/handles.h"
#include "runtime/device/program.h"
#include "runtime/device/state.h"
#include <span>
#include <string>
#include <vector>

namespace zero::runtime::cuda {

class Arenas {
public:
  // `neighbours`: with whom the host's memory is shared.
  Arenas(const Gpu &gpu, const Neighbours &neighbours);

  // Zero-filled, on a boundary of 4096 bytes. One on disk has a number and no memory. Throws a sentence if there is not enough.
  uint32_t allocate(const std::string &name, plan::Tier tier, uint64_t bytes);
  uint32_t count() const { return static_cast<uint32_t>(arenas.size()); }

  // As the GPU knows it.
  Pointer pointer(Address address) const { return arenas[address.arena].start + address.offset; }
  // As the host knows it; null if it is memory of the GPU, or on disk.
  std::byte *hostMemory(Address address) const;
  std::vector<std::span<std::byte>> hostArenas() const;
  // Calls take(start, bytes) for each in the memory of the GPU.
  template <typename Take> void eachOnGpu(Take take) const {
    for (const Arena &arena : arenas)
      if (arena.device) take(arena.start, arena.bytes);
  }

  // For State. What lies on the GPU is copied piece by piece.
  void read(Address from, uint64_t bytes, const TakePiece &take) const;
  void write(Address to, uint64_t bytes, const FillPiece &fill);

private:
  struct Arena {
    plan::Tier tier;
    uint64_t bytes;
    DeviceMemory device;
    MappedArena host;
    PinnedMemory pinned; // that
    Pointer start = 0;
  };

  void requireHostMemory(const std::string &name, uint64_t bytes) const;
  void copy(Pointer to, Pointer from, uint64_t bytes) const;

  const Gpu &gpu;
  const Driver &driver;
  Neighbours neighbours;
  std::vector<Arena> arenas;
  OwnedStream stream;   // for copies and fills of its own
  PinnedMemory staging; // kPieceBytes
};

} // namespace zero::runtime::cuda
