#include "runtime/device/cuda/arenas.h"
#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/device/cpu/available_memory.h"
#include "runtime/process/in_parts.h"
#include "runtime/process/processors.h"
#include <algorithm>
#include <cstring>

namespace zero::runtime::cuda {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPart = uint64_t(64) << 20; // bytes that are worth starting a thread

uint64_t roundUp(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

} // namespace

Arenas::Arenas(const Gpu &gpu, const Neighbours &neighbours)
    : gpu(gpu), driver(Driver::get()), neighbours(neighbours), stream(makeStream()),
      staging(allocatePinned(kPieceBytes, "state on its way to the GPU")) {}

uint32_t Arenas::allocate(const std::string &name, plan::Tier tier, uint64_t bytes) {
  Arena arena{tier, bytes, {}, {}, {}, 0};
  std::string what = "arena '" + name + "'";
  if (bytes > 0 && tier == plan::DEVICE) {
    uint64_t all = roundUp(bytes) + kPage, free = gpu.freeBytes();
    if (all > free)
      throw Error(what + " takes " + inMiB(bytes) + " of GPU memory, but '" + gpu.name() + "' has " + inMiB(free) +
                  " left; compile with a smaller --device-memory, which leaves the rest in host memory or on disk, for more GPUs, a higher "
                  "--stage or a smaller batch");
    arena.device = allocateDevice(all, what);
    arena.start = roundUp(arena.device.get());
    driver.require(driver.fill8Async(arena.start, 0, bytes, stream.get()), "cannot clear " + what);
    driver.require(driver.streamSynchronize(stream.get()), "cannot clear " + what);
  } else if (bytes > 0 && tier == plan::HOST) {
    requireHostMemory(what, bytes);
    // Huge pages, there before they are pinned: written to by all threads, and few for the driver to take note of. The driver's own
    // allocation takes and gives back small ones one by one, a hundred gibibytes in a minute and more.
    arena.host = MappedArena(name, bytes);
    std::byte *start = arena.host.data();
    auto threads = static_cast<int>(processors()) / neighbours.all;
    inParts(bytes, kPart, threads, "a thread that clears memory",
            [&](uint64_t begin, uint64_t end) { std::memset(start + begin, 0, end - begin); });
    arena.pinned = pin(start, roundUp(bytes), what);
    arena.start = pointerTo(start);
  }
  arenas.push_back(std::move(arena));
  return count() - 1;
}

// Pinned memory is there at once, so that what is too much would have the system end a process.
void Arenas::requireHostMemory(const std::string &what, uint64_t bytes) const {
  AvailableMemory available = availableMemory(neighbours);
  if (bytes <= available.ofEach()) return;
  throw Error(what + " takes " + inMiB(bytes) + " of host memory, but " +
              (available.group.empty() ? "this machine has" : "the memory limit of the control group '" + available.group + "' leaves") +
              " " + inMiB(available.bytes) + available.sharers() +
              "; compile with a smaller --host-memory, which leaves the rest on disk, or for more machines");
}

std::byte *Arenas::hostMemory(Address address) const {
  const Arena &arena = arenas[address.arena];
  return arena.pinned ? arena.host.data() + address.offset : nullptr;
}

std::vector<std::span<std::byte>> Arenas::hostArenas() const {
  std::vector<std::span<std::byte>> list;
  for (const Arena &arena : arenas)
    if (arena.pinned) list.push_back(arena.host.bytes());
  return list;
}

void Arenas::copy(Pointer to, Pointer from, uint64_t bytes) const {
  gpu.enter();
  driver.require(driver.copyAsync(to, from, bytes, stream.get()), "cannot copy state from or to the GPU");
  driver.require(driver.streamSynchronize(stream.get()), "cannot copy state from or to the GPU");
}

void Arenas::read(Address from, uint64_t bytes, const TakePiece &take) const {
  if (const std::byte *host = hostMemory(from)) return lendPieces(host, bytes, take);
  auto *piece = static_cast<std::byte *>(staging.get());
  for (uint64_t first = 0; first < bytes; first += kPieceBytes) {
    uint64_t size = std::min(kPieceBytes, bytes - first);
    copy(pointerTo(piece), pointer(from) + first, size);
    take(first, std::span<const std::byte>(piece, size));
  }
}

void Arenas::write(Address to, uint64_t bytes, const FillPiece &fill) {
  if (std::byte *host = hostMemory(to)) return lendPieces(host, bytes, fill);
  auto *piece = static_cast<std::byte *>(staging.get());
  for (uint64_t first = 0; first < bytes; first += kPieceBytes) {
    uint64_t size = std::min(kPieceBytes, bytes - first);
    fill(first, std::span(piece, size));
    copy(pointer(to) + first, pointerTo(piece), size);
  }
}

} // namespace zero::runtime::cuda
