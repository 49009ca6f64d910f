//===- kept_row.h - rows that lie near a multiprocessor between two passes ----------------------------------===//
// A block that passes over a row more than once finds a short one again in the first-level cache. Of a longer one, as those of a vocabulary
// are, each thread keeps in shared memory what it has read of it, so that memory is read once. Plain data.
#pragma once
#include "compiler/codegen/program.h"

namespace zero::codegen {

/// The load of all points of a row that the first pass over it and the last one have in common, by vectors of so many lanes; none: -1.
int keptLoad(const Program &program, unsigned lanes);

/// Bytes of shared memory that a block of `threads` threads needs to keep such a row, and for what its threads share anyway. 0: shorter
/// rows are not kept, and longer ones do not fit in beside those of another block.
unsigned keptBytes(const Program &program, unsigned lanes, unsigned threads);

} // namespace zero::codegen
