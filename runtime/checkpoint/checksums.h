// Sums that tell a damaged piece of a checkpoint: one per block of its elements, so that a rank that needs a part of a
// piece reads little more than that.
#pragma once
#include <cstdint>

namespace zero::runtime {

inline constexpr uint64_t kChecksumBlock = uint64_t(1) << 20; // elements

// CRC-32C (Castagnoli), which processors compute as fast as memory is read.
uint32_t checksum(const void *data, uint64_t bytes);

// How many blocks `count` elements are; the last one may be shorter.
inline uint64_t checksumBlocks(uint64_t count) { return (count + kChecksumBlock - 1) / kChecksumBlock; }

} // namespace zero::runtime
