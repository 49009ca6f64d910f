#include "runtime/device/disk_arenas.h"
#include "runtime/base/error.h"
#include <array>
#include <future>
#include <malloc.h>
#include <sys/mman.h>
#include <utility>

namespace zero::runtime {
namespace {

// A piece need not begin with a block.
constexpr uint64_t kWindowBytes = kPieceBytes + kBlockBytes;
constexpr auto kBeside = std::launch::async | std::launch::deferred; // in turns where the system refuses a thread
static_assert(2 * kWindowBytes == kStagingBytes);

uint64_t roundDown(uint64_t bytes) { return bytes / kBlockBytes * kBlockBytes; }
uint64_t roundUp(uint64_t bytes) { return roundDown(bytes + kBlockBytes - 1); }

// Whole blocks of the storage, in memory: those that bytes [offset, offset + count) lie in, and others later.
class Window {
public:
  Window(Storage &storage, std::byte *memory) : storage(storage), memory(memory) {}

  void show(uint64_t offset, uint64_t count) {
    from = roundDown(offset), to = roundUp(offset + count), begin = offset - from, bytes = count;
  }
  std::span<std::byte> shown() { return {memory + begin, bytes}; }

  void read() { storage.read(from, blocks(from, to)); }
  void write() { storage.write(from, blocks(from, to)); }
  // The blocks that are shown in part, which others share.
  void readEdges() {
    uint64_t last = to - kBlockBytes;
    if (begin != 0 || (from == last && begin + bytes < kBlockBytes)) storage.read(from, blocks(from, from + kBlockBytes));
    if (from != last && from + begin + bytes < to) storage.read(last, blocks(last, to));
  }

private:
  std::span<std::byte> blocks(uint64_t first, uint64_t end) { return {memory + (first - from), end - first}; }

  Storage &storage;
  std::byte *memory;
  uint64_t from = 0, to = 0, begin = 0, bytes = 0;
};

} // namespace

std::byte *DiskArenas::Staging::memory() {
  if (mapping) return mapping;
  ::malloc_trim(0); // what the library of products packed operands in lies idle while no program runs
  void *found = ::mmap(nullptr, kStagingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) throw Error("this process cannot get the memory it needs to reach its state on disk");
  return mapping = static_cast<std::byte *>(found);
}

void DiskArenas::Staging::release() {
  std::lock_guard lock(inUse);
  if (!mapping) return;
  ::munmap(std::exchange(mapping, nullptr), kStagingBytes);
  ::malloc_trim(0); // heap that was freed after reading and writing state lies idle while programs run
}

void DiskArenas::allocate(uint32_t arena, const std::string &name, uint64_t bytes) {
  if (folders.empty())
    throw Error("arena '" + name + "' keeps " + std::to_string(bytes) + " bytes on disk; say where with --disk-path DIR");
  if (!opened) opened = openStorage(folders, rank);
  begins[arena] = opened->allocate(bytes);
}

std::optional<uint64_t> DiskArenas::find(Address address) const {
  auto found = begins.find(address.arena);
  if (found == begins.end()) return std::nullopt;
  return found->second + address.offset;
}

void DiskArenas::prepareRows(const RowLimits &limits) {
  if (limits.count > 0) rows = std::make_unique<RowWriter>(*opened, limits);
}

// The disk is at work on one piece while the caller is at another one. A transfer that is under way when the caller throws is waited for:
// so does the destructor of what std::async returns.
void DiskArenas::read(uint64_t offset, uint64_t bytes, const TakePiece &take) const {
  std::lock_guard lock(staging.inUse);
  std::array windows{Window(*opened, staging.memory()), Window(*opened, staging.memory() + kWindowBytes)};
  auto fetch = [&](uint64_t first) {
    Window &window = windows[first / kPieceBytes % 2];
    window.show(offset + first, std::min(kPieceBytes, bytes - first));
    window.read();
  };
  std::future<void> coming;
  for (uint64_t first = 0; first < bytes; first += kPieceBytes) {
    if (coming.valid())
      coming.get();
    else
      fetch(first);
    if (uint64_t next = first + kPieceBytes; next < bytes) coming = std::async(kBeside, fetch, next);
    take(first, windows[first / kPieceBytes % 2].shown());
  }
}

void DiskArenas::write(uint64_t offset, uint64_t bytes, const FillPiece &fill) const {
  std::lock_guard lock(staging.inUse);
  std::array windows{Window(*opened, staging.memory()), Window(*opened, staging.memory() + kWindowBytes)};
  bool sharesBlocks = offset % kBlockBytes != 0; // a piece with the next one
  std::future<void> leaving;
  auto wait = [&] {
    if (leaving.valid()) leaving.get();
  };
  for (uint64_t first = 0; first < bytes; first += kPieceBytes) {
    Window &window = windows[first / kPieceBytes % 2];
    window.show(offset + first, std::min(kPieceBytes, bytes - first));
    if (sharesBlocks) wait();
    window.readEdges();
    fill(first, window.shown());
    wait();
    if (first + kPieceBytes < bytes)
      leaving = std::async(kBeside, [&window] { window.write(); });
    else
      window.write();
  }
}

} // namespace zero::runtime
