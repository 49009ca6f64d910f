// Writes rows of a table to their places on disk. Rows are no whole blocks, so the blocks that hold some are read, changed and written: in
// batches of as much as the staging memory has room for, in the order of the disk, each with all of its requests under way together.
#pragma once
#include "runtime/storage/storage.h"
#include "runtime/storage/table_rows.h"
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace zero::runtime {

// A row that meets a window, and where that part of it lies in the staging memory.
struct PlacedRow {
  int64_t index;
  uint64_t row;
  uint64_t staged = 0;
};

// What the rows that a writer is made for are at most.
struct RowLimits {
  uint64_t count = 0, rowBytes = 0;

  // Of the staging memory, which has room for any row with the rest of its blocks, and of the list of rows.
  uint64_t stagingBytes() const { return std::max(kBatchBytes, (rowBytes / kBlockBytes + 2) * kBlockBytes); }
  uint64_t listBytes() const { return count * sizeof(PlacedRow) + stagingBytes() / kBlockBytes * sizeof(Storage::Part); }

  static constexpr uint64_t kBatchBytes = uint64_t(1) << 20;
};

class RowWriter {
public:
  RowWriter(Storage &storage, const RowLimits &limits);

  // The rows' parts come to the window, which begins at `offset` of the storage, a multiple of kBlockBytes; of equal indices those of the
  // first. Other bytes of the blocks are written as they were read. One call at a time, and no other transfer of these blocks. Throws a
  // sentence if the disk fails.
  void put(const TableRows &table, const void *indices, const std::byte *rows, uint64_t offset);

private:
  void list(const TableRows &table, const void *indices);
  size_t stage(const TableRows &table, const void *indices, uint64_t offset, std::span<PlacedRow> some);

  Storage &storage;
  std::mutex inUse;
  uint64_t stagingBytes;
  std::unique_ptr<std::byte, decltype(&std::free)> staging;
  std::vector<PlacedRow> placed;
  std::vector<Storage::Part> parts; // of a batch
};

} // namespace zero::runtime
