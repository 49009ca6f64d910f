// Arenas: one mapping each, on 2 MiB boundaries so that the kernel can back it with huge pages.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zero::runtime {

class MappedArena {
public:
  MappedArena() = default;
  MappedArena(const std::string &name, uint64_t bytes);
  static uint64_t mappedFor(uint64_t bytes); // addresses that one of so many bytes takes
  ~MappedArena();
  MappedArena(MappedArena &&other) noexcept;
  MappedArena &operator=(MappedArena &&other) noexcept;

  std::byte *data() const { return start; }
  std::span<std::byte> bytes() const { return {start, size}; }

private:
  void *mapping = nullptr;
  size_t mapped = 0;
  std::byte *start = nullptr;
  size_t size = 0;
};

} // namespace zero::runtime
