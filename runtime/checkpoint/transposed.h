// A tensor of a file written again with its axes exchanged, elsewhere in the same or another file.
#pragma once
#include "runtime/files/file.h"

namespace zero::runtime {

struct Matrix {
  const File &file;
  uint64_t offset;
};

// `from` is rows x columns of `size`-byte elements, `to` becomes columns x rows. Rank `rank` of `world` writes its share.
void writeTransposed(Matrix from, Matrix to, uint64_t rows, uint64_t columns, uint64_t size, uint64_t rank, uint64_t world);

} // namespace zero::runtime
