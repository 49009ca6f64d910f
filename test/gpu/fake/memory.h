// Memory of the fake device, and memory of the host that it reaches.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace zero::fake {

class Memory {
public:
  static Memory &get();

  // 0 if there is none left. Filled with garbage.
  uint64_t allocate(size_t bytes);
  bool release(uint64_t address);
  void *allocatePinned(size_t bytes);
  bool releasePinned(void *memory);
  bool pin(void *memory, size_t bytes); // whole pages of somebody else's
  bool unpin(void *memory);

  // Where the host may really reach bytes that the device knows by this address; null if they do not lie in one allocation of the device or
  // in one of pinned memory.
  std::byte *reach(uint64_t address, size_t bytes) const;

  size_t total() const { return capacity; }
  size_t free() const;

private:
  Memory();

  size_t capacity, used = 0;
  std::byte *shown = nullptr;   // the addresses that are given out: nobody can touch them
  std::byte *backing = nullptr; // where their bytes are
  mutable std::mutex mutex;
  std::map<uint64_t, size_t> device, pinned; // bytes by address
};

} // namespace zero::fake
