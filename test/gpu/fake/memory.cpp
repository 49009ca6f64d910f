#include "test/gpu/fake/memory.h"
#include "test/gpu/fake/faults.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace zero::fake {
namespace {

constexpr size_t kAlignment = 512; // of what is given out; apart by as much, so that what reaches too far reaches into nothing

size_t spaced(size_t bytes) { return (bytes / kAlignment + 2) * kAlignment; }

// What is large gets the pages of a garbage file, which take no memory until they are written.
void fillWithGarbage(std::byte *memory, size_t bytes) {
  constexpr size_t kPage = 4096, kPiece = 1 << 20;
  constexpr int kGarbage = 0xa5;
  if (bytes < 2 * kPiece) return static_cast<void>(std::memset(memory, kGarbage, bytes));
  static const int file = [] {
    std::vector<std::byte> piece(kPiece, std::byte{kGarbage});
    int made = ::memfd_create("fake-garbage", MFD_CLOEXEC);
    return ::write(made, piece.data(), kPiece) == static_cast<ssize_t>(kPiece) ? made : -1;
  }();
  size_t before = -reinterpret_cast<uintptr_t>(memory) % kPage, after = (bytes - before) % kPage;
  std::byte *first = memory + before, *end = memory + bytes - after;
  std::memset(memory, kGarbage, before), std::memset(end, kGarbage, after);
  for (std::byte *at = first; at < end; at += kPiece)
    if (::mmap(at, std::min<size_t>(kPiece, end - at), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
      std::abort();
}

} // namespace

// Both are left as they are when the process ends: streams may still be at work.
Memory &Memory::get() {
  static Memory *memory = new Memory;
  return *memory;
}

Memory::Memory() : capacity(setting("ZERO_FAKE_MEMORY", uint64_t(4) << 30)) {
  auto reserve = [this](int protection) {
    return static_cast<std::byte *>(::mmap(nullptr, capacity, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  };
  shown = reserve(PROT_NONE), backing = reserve(PROT_READ | PROT_WRITE);
  if (shown == MAP_FAILED || backing == MAP_FAILED) {
    std::fputs("the fake device got no memory\n", stderr);
    std::abort();
  }
}

size_t Memory::free() const {
  std::lock_guard lock(mutex);
  return capacity - used;
}

uint64_t Memory::allocate(size_t bytes) {
  if (bytes == 0) return 0;
  std::lock_guard lock(mutex);
  auto base = reinterpret_cast<uint64_t>(shown);
  uint64_t at = base; // the first gap that it fits into
  for (auto [begin, size] : device) {
    if (begin - at >= spaced(bytes)) break;
    at = begin + spaced(size);
  }
  if (at - base > capacity || capacity - (at - base) < spaced(bytes)) return 0;
  device[at] = bytes, used += spaced(bytes);
  fillWithGarbage(backing + (at - base), bytes);
  return at;
}

bool Memory::release(uint64_t address) {
  std::lock_guard lock(mutex);
  auto found = device.find(address);
  if (found == device.end()) return false;
  used -= spaced(found->second);
  device.erase(found);
  return true;
}

void *Memory::allocatePinned(size_t bytes) {
  void *memory = bytes ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
  if (memory == MAP_FAILED) return nullptr;
  fillWithGarbage(static_cast<std::byte *>(memory), bytes);
  std::lock_guard lock(mutex);
  pinned[reinterpret_cast<uint64_t>(memory)] = bytes;
  return memory;
}

bool Memory::releasePinned(void *memory) {
  std::lock_guard lock(mutex);
  auto found = pinned.find(reinterpret_cast<uint64_t>(memory));
  if (found == pinned.end()) return false;
  ::munmap(memory, found->second);
  pinned.erase(found);
  return true;
}

bool Memory::pin(void *memory, size_t bytes) {
  constexpr uint64_t page = 4096;
  auto address = reinterpret_cast<uint64_t>(memory);
  if (bytes == 0 || address % page || bytes % page) return false;
  std::lock_guard lock(mutex);
  return pinned.emplace(address, bytes).second;
}

bool Memory::unpin(void *memory) {
  std::lock_guard lock(mutex);
  return pinned.erase(reinterpret_cast<uint64_t>(memory)) == 1;
}

std::byte *Memory::reach(uint64_t address, size_t bytes) const {
  std::lock_guard lock(mutex);
  for (const auto *allocations : {&device, &pinned}) {
    auto next = allocations->upper_bound(address);
    if (next == allocations->begin()) continue;
    auto [begin, size] = *std::prev(next);
    uint64_t offset = address - begin;
    if (offset > size || size - offset < bytes) continue;
    return allocations == &device ? backing + (address - reinterpret_cast<uint64_t>(shown)) : reinterpret_cast<std::byte *>(address);
  }
  return nullptr;
}

} // namespace zero::fake
