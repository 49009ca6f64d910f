// The arenas of a device that lie on disk, whatever its memory is: where each begins in the rank's storage, and State's pieces of them.
#pragma once
#include "runtime/device/program.h"
#include "runtime/device/state.h"
#include "runtime/storage/row_writer.h"
#include "runtime/storage/storage.h"
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace zero::runtime {

class DiskArenas {
public:
  DiskArenas(std::vector<std::string> folders, int rank) : folders(std::move(folders)), rank(rank) {}

  // Opens the storage with the first one. Throws a sentence if there is no folder for it, or no room.
  void allocate(uint32_t arena, const std::string &name, uint64_t bytes);
  bool any() const { return !begins.empty(); }
  Storage &storage() const { return *opened; }

  // The offset of an address in the storage; nothing if its arena does not lie there.
  std::optional<uint64_t> find(Address address) const;

  // Before the first of them, what writes rows of tables; nothing if there are none.
  void prepareRows(const RowLimits &limits);
  RowWriter &rowWriter() const { return *rows; }

  // One at a time. Any offset and length: what is no whole block at the ends is read and written with the rest of its block.
  void read(uint64_t offset, uint64_t bytes, const TakePiece &take) const;
  void write(uint64_t offset, uint64_t bytes, const FillPiece &fill) const;
  // Gives back what read() and write() have staged in, which is kept from one to the next: before a program runs.
  void releaseStaging() const { staging.release(); }

  DiskTraffic traffic() const { return opened ? opened->traffic() : DiskTraffic{}; }
  std::vector<std::string> notes() const { return opened ? opened->notes() : std::vector<std::string>{}; }

private:
  // A mapping of its own: pieces of the heap, of ever other lengths, would leave holes in it.
  struct Staging {
    ~Staging() { release(); }
    std::byte *memory(); // by who holds the lock
    void release();
    std::mutex inUse;
    std::byte *mapping = nullptr;
  };

  std::vector<std::string> folders;
  int rank;
  std::unique_ptr<Storage> opened;
  std::unique_ptr<RowWriter> rows;
  std::map<uint32_t, uint64_t> begins; // of arenas
  mutable Staging staging;
};

} // namespace zero::runtime
