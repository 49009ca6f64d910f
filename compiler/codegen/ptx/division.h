//===- division.h - how the threads of a GPU share the work of a kernel -----------------------------------===//
// Plain data between a program and its emission. No thread waits for another block, and each element of a result is written by one
// thread, which adds in a fixed order: the bits do not depend on what runs when.
#pragma once
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/program.h"

namespace zero::codegen {

struct Division {
  enum Form {
    Map,     // a thread computes `lanes` neighbours along the last dimension
    Rows,    // a team of threads works on a row: each takes every `team`-th vector of `lanes` elements, and sums are joined in trees
    Parts,   // a block works on a part of the rows, `width` rows at once, and each thread on a vector of columns, which it sums
    Columns, // `width` vectors of columns side by side in a block; `threads` / `width` groups of threads take the rows in turn
    Scatter, // a block owns `width` rows of the result and adds the updates that fall into them, in order
    Scan,    // a thread works on a row
    Tiles,   // a block makes a tile of rows of attention's results, a warp 16 or 32 of them (attention_tiles.h)
  } form = Map;
  unsigned lanes = 1;     // elements of a vector: as many as 16 bytes hold of the narrowest type (of rows: that is read), where the last
                          // dimension is a multiple
  unsigned threads = 256; // of a block
  unsigned team = 32;     // Rows: a warp, a part of one, or the whole block
  unsigned width = 1;     // Parts, Columns, Scatter
  bool ahead = false;     // Parts: the next rows are loaded before these are joined
  unsigned resident = 0;  // blocks that a multiprocessor should hold at once, for which registers are shared out; 0: no wish
  unsigned shared = 0;    // bytes that a launch gives each block, where code needs more than it may declare itself
  uint64_t blocks = 1;

  Grid grid() const { return {blocks, threads, shared}; }
};

/// Bytes of shared memory that code may declare itself, of any GPU's.
inline constexpr unsigned kStaticShared = 48 << 10;

Division divisionOf(const Program &program);

/// Whether the kernel has exponentials, or functions made of them, that a GPU's unit may approximate (Math::approximate): it reads tensors
/// of half precision.
bool approximates(const Program &program);

} // namespace zero::codegen
