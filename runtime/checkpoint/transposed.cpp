#include "runtime/checkpoint/transposed.h"
#include <algorithm>
#include <cstring>
#include <vector>

namespace zero::runtime {

void writeTransposed(Matrix from, Matrix to, uint64_t rows, uint64_t columns, uint64_t size, uint64_t rank, uint64_t world) {
  // Rows come in blocks of some megabytes: one long read each, and one write per column that is as long as the block is high.
  uint64_t block = std::clamp<uint64_t>((16u << 20) / std::max<uint64_t>(1, columns * size), 1, std::max<uint64_t>(1, rows));
  std::vector<std::byte> in(block * columns * size), out(in.size());
  uint64_t first = rows * rank / world, end = rows * (rank + 1) / world;
  for (uint64_t row = first; row < end; row += block) {
    uint64_t high = std::min(block, end - row);
    from.file.read(from.offset + row * columns * size, in.data(), high * columns * size);
    for (uint64_t r = 0; r < high; ++r)
      for (uint64_t c = 0; c < columns; ++c) std::memcpy(&out[(c * high + r) * size], &in[(r * columns + c) * size], size);
    for (uint64_t c = 0; c < columns; ++c) to.file.write(to.offset + (c * rows + row) * size, &out[c * high * size], high * size);
  }
}

} // namespace zero::runtime
