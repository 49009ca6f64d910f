#include "runtime/checkpoint/transposed.h"
#include <algorithm>
#include <cstring>
#include <vector>

namespace zero::runtime {

void writeTransposed(Matrix from, Matrix to, uint64_t rows, uint64_t columns, uint64_t size, uint64_t rank, uint64_t world) {
  // Tile by tile, as wide and as high as makes both its rows and its columns long reads and writes; whole rows follow each other in the
  // file.
  constexpr uint64_t kTileBytes = uint64_t(4) << 20, kWidth = 1024;
  uint64_t width = std::clamp<uint64_t>(columns, 1, kWidth),
           height = std::clamp<uint64_t>(kTileBytes / (width * size), 1, std::max<uint64_t>(1, rows));
  std::vector<std::byte> in(height * width * size), out(in.size());
  uint64_t first = rows * rank / world, end = rows * (rank + 1) / world;
  for (uint64_t row = first; row < end; row += height)
    for (uint64_t column = 0; column < columns; column += width) {
      uint64_t high = std::min(height, end - row), wide = std::min(width, columns - column),
               at = from.offset + (row * columns + column) * size;
      if (wide == columns)
        from.file.read(at, in.data(), high * columns * size);
      else
        for (uint64_t r = 0; r < high; ++r) from.file.read(at + r * columns * size, &in[r * wide * size], wide * size);
      for (uint64_t r = 0; r < high; ++r)
        for (uint64_t c = 0; c < wide; ++c) std::memcpy(&out[(c * high + r) * size], &in[(r * wide + c) * size], size);
      for (uint64_t c = 0; c < wide; ++c) to.file.write(to.offset + ((column + c) * rows + row) * size, &out[c * high * size], high * size);
    }
}

} // namespace zero::runtime
