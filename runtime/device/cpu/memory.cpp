#include "runtime/device/cpu/memory.h"
#include "runtime/base/error.h"
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace zero::runtime {
namespace {

constexpr size_t kHugePage = size_t(2) << 20;

} // namespace

uint64_t MappedArena::mappedFor(uint64_t bytes) { return bytes ? bytes + kHugePage : 0; }

MappedArena::MappedArena(const std::string &name, uint64_t bytes) {
  if (bytes == 0) return;
  mapped = mappedFor(bytes);
  mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    mapping = nullptr;
    throw Error("cannot allocate " + std::to_string(bytes) + " bytes for arena '" + name + "': " + std::strerror(errno));
  }
  auto address = reinterpret_cast<uintptr_t>(mapping);
  start = reinterpret_cast<std::byte *>((address + kHugePage - 1) / kHugePage * kHugePage);
  size = bytes;
  madvise(start, bytes, MADV_HUGEPAGE); // only advice: small pages are slower, not wrong
}

MappedArena::MappedArena(MappedArena &&other) noexcept
    : mapping(std::exchange(other.mapping, nullptr)), mapped(other.mapped), start(std::exchange(other.start, nullptr)), size(other.size) {}

MappedArena &MappedArena::operator=(MappedArena &&other) noexcept {
  std::swap(mapping, other.mapping), std::swap(mapped, other.mapped), std::swap(start, other.start), std::swap(size, other.size);
  return *this;
}

MappedArena::~MappedArena() {
  if (mapping) munmap(mapping, mapped);
}

} // namespace zero::runtime
