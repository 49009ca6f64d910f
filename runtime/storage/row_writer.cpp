#include "runtime/storage/row_writer.h"
#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>

namespace zero::runtime {
namespace {

uint64_t roundDown(uint64_t bytes) { return bytes / kBlockBytes * kBlockBytes; }
uint64_t roundUp(uint64_t bytes) { return roundDown(bytes + kBlockBytes - 1); }

} // namespace

RowWriter::RowWriter(Storage &storage, const RowLimits &limits)
    : storage(storage), stagingBytes(limits.stagingBytes()),
      staging(static_cast<std::byte *>(std::aligned_alloc(kBlockBytes, stagingBytes)), std::free) {
  if (!staging) throw std::bad_alloc();
  placed.reserve(limits.count);
  parts.reserve(stagingBytes / kBlockBytes);
  storage.openScattered();
}

// Those that meet the window, in the order of the disk, each index once.
void RowWriter::list(const TableRows &table, const void *indices) {
  placed.clear();
  for (uint64_t row = 0; row < table.count; ++row)
    if (partOf(table, indices, row)) placed.push_back({indexAt(table, indices, row), row});
  std::ranges::sort(placed, [](const PlacedRow &a, const PlacedRow &b) { return std::tie(a.index, a.row) < std::tie(b.index, b.row); });
  auto others = std::ranges::unique(placed, {}, &PlacedRow::index);
  placed.erase(others.begin(), others.end());
}

// As many of the rows as there is room for, one at least, with the blocks that hold them: those that follow each other are one part.
size_t RowWriter::stage(const TableRows &table, const void *indices, uint64_t offset, std::span<PlacedRow> some) {
  parts.clear();
  uint64_t used = 0, end = 0; // of the staging memory; of the last part on disk
  size_t count = 0;
  for (PlacedRow &row : some) {
    RowPart part = *partOf(table, indices, row.row);
    uint64_t from = offset + part.inWindow, first = roundDown(from), last = roundUp(from + part.bytes);
    bool joins = !parts.empty() && first <= end;
    uint64_t more = joins ? last - std::min(end, last) : last - first;
    if (used + more > stagingBytes) break;
    if (joins)
      parts.back().bytes += more;
    else
      parts.push_back({first, staging.get() + used, more});
    used += more, end = parts.back().offset + parts.back().bytes;
    row.staged = used - (end - from);
    ++count;
  }
  return count;
}

void RowWriter::put(const TableRows &table, const void *indices, const std::byte *rows, uint64_t offset) {
  std::lock_guard lock(inUse);
  list(table, indices);
  for (std::span<PlacedRow> left = placed; !left.empty();) {
    std::span<PlacedRow> batch = left.first(stage(table, indices, offset, left));
    storage.readScattered(parts);
    for (const PlacedRow &row : batch) {
      RowPart part = *partOf(table, indices, row.row);
      std::memcpy(staging.get() + row.staged, rows + part.inRows, part.bytes);
    }
    storage.writeScattered(parts);
    left = left.subspan(batch.size());
  }
}

} // namespace zero::runtime
