#include "runtime/storage/table_rows.h"
#include <algorithm>
#include <cstring>

namespace zero::runtime {

int64_t indexAt(const TableRows &table, const void *indices, uint64_t row) {
  auto load = [&]<typename Index>(Index index) -> int64_t {
    std::memcpy(&index, static_cast<const std::byte *>(indices) + row * sizeof(index), sizeof(index));
    return index;
  };
  return table.indexType == plan::I64 ? load(int64_t(0)) : load(int32_t(0));
}

std::optional<RowPart> partOf(const TableRows &table, const void *indices, uint64_t row) {
  int64_t index = indexAt(table, indices, row);
  uint64_t end = table.begin + table.bytes;
  if (index < 0 || end == 0 || static_cast<uint64_t>(index) > (end - 1) / table.rowBytes) return std::nullopt;
  uint64_t first = static_cast<uint64_t>(index) * table.rowBytes;
  uint64_t from = std::max(first, table.begin), to = std::min(first + table.rowBytes, end);
  if (from >= to) return std::nullopt;
  return RowPart{from - table.begin, row * table.rowBytes + (from - first), to - from};
}

void copyRows(const TableRows &table, const void *indices, const std::byte *window, std::byte *rows) {
  for (uint64_t row = 0; row < table.count; ++row)
    if (auto part = partOf(table, indices, row)) std::memcpy(rows + part->inRows, window + part->inWindow, part->bytes);
}

void moveRows(const TableRows &table, const void *indices, std::byte *window, std::byte *rows) {
  for (uint64_t row = 0; row < table.count; ++row)
    if (auto part = partOf(table, indices, row)) {
      std::memcpy(rows + part->inRows, window + part->inWindow, part->bytes);
      std::memset(window + part->inWindow, 0, part->bytes);
    }
}

void putRows(const TableRows &table, const void *indices, const std::byte *rows, std::byte *window) {
  for (uint64_t row = table.count; row-- > 0;) // the first of equal ones is written last
    if (auto part = partOf(table, indices, row)) std::memcpy(window + part->inWindow, rows + part->inRows, part->bytes);
}

} // namespace zero::runtime
