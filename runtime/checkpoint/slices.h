// What files need to know of where parameters lie (runtime/plan/pieces.h), for one rank.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/device/state.h"
#include "runtime/plan/pieces.h"
#include <cstdint>
#include <vector>

namespace zero::runtime {

using plan::elementsOf;
using plan::PieceMap;
using plan::Range;
using plan::Slice;

// The shard rank `rank` owns.
Range ownedBy(const plan::Bucket &bucket, uint64_t rank);
// What a tensor of the bucket holds on this rank.
Range heldIn(const plan::Bucket &bucket, const plan::StateTensor &tensor, uint64_t rank);

// What a rank needs to move model state in and out of files.
struct Rank {
  const plan::Plan &plan;
  uint64_t rank;
  State &state;               // the engine's
  Communicator &communicator; // barriers and agreement, on the calling thread
};

} // namespace zero::runtime
