// Rows of a table by index, and where they meet a window of it (plan.TableRows): consecutive bytes of the table, which may begin and end
// within a row. Plain memory alone. Whatever an index is, it is safe: a row that does not meet the window has no part in what is done.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstddef>
#include <cstdint>
#include <optional>

namespace zero::runtime {

struct TableRows {
  plan::DType indexType; // I64 or I32
  uint64_t count;        // rows, one for each index, one after another
  uint64_t rowBytes;
  uint64_t begin, bytes; // of the window in the table
};

// As much of a row as lies in the window: its bytes there, and among all rows.
struct RowPart {
  uint64_t inWindow, inRows, bytes;
};

int64_t indexAt(const TableRows &table, const void *indices, uint64_t row);
std::optional<RowPart> partOf(const TableRows &table, const void *indices, uint64_t row);

// The window's parts of the rows come to the rows.
void copyRows(const TableRows &table, const void *indices, const std::byte *window, std::byte *rows);
// The same, and they become zero in the window: of equal indices the first gets what was there, and others get zeros.
void moveRows(const TableRows &table, const void *indices, std::byte *window, std::byte *rows);
// The rows' parts come to the window, of equal indices those of the first.
void putRows(const TableRows &table, const void *indices, const std::byte *rows, std::byte *window);

} // namespace zero::runtime
