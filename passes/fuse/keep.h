//===- keep.h - what of forward is kept for backward, and what is made again ------------------------------===//
// Plain data: the problem as lists, and its solution. Forward is a chain of blocks; what crosses the end of a block is kept, so that blocks
// are made again independently of each other, each right before its own backward, and equal blocks are solved once.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace zero::fuse {

/// One tensor that forward makes, or those that come out of one operation together.
struct Made {
  uint64_t bytes = 0;          // while it is kept
  uint64_t cost = 0;           // of making it from `needs`
  std::vector<uint32_t> needs; // made before it, by index; parameters and inputs are always there
  uint64_t kind = 0;           // equal for what the same mathematics makes from tensors of the same types
  bool read = false;           // by backward
};

/// Where blocks end, as indices after their last: at the narrowest places of the chain, once per repetition where a pattern repeats. The
/// last is forward.size(), and what stands after the last repetition (a head and its loss) is a block of its own.
std::vector<uint32_t> blockEnds(std::span<const Made> forward);

/// What one choice keeps and makes again.
struct Keeping {
  std::vector<bool> dropped; // read by backward, and not kept
  std::vector<bool> again;   // made again in backward: what is dropped, and what leads there from what is kept
  uint64_t bytes = 0;        // kept, with what backward reads of the last block
  uint64_t cost = 0;         // of `again`
  uint32_t blocks = 0;       // of which something is made again
};

/// The cheapest choice that keeps at most `bytes`; where none does, the cheapest of those that keep least.
///
/// Always kept are what backward reads of the last block (its backward comes first: nothing would be saved) and what it reads of what later
/// blocks read too. What is kept for nothing but to make others again counts for each block that reads it. Exact for blocks of up to
/// kMostExact tensors to decide about, not counting those that are small beside the others and are kept unless all are dropped; a larger
/// one gives up what is cheapest by the byte, one after another.
Keeping keep(std::span<const Made> forward, std::span<const uint32_t> ends, uint64_t bytes);

inline constexpr unsigned kMostExact = 14;

} // namespace zero::fuse
