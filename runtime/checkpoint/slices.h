// What files need to know of where parameters lie (runtime/plan/pieces.h), for one rank.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/device/state.h"
#include "runtime/plan/pieces.h"
#include <cstdint>
#include <functional>
#include <span>
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

// Both copies of the parameters, or the one there is: what first values and checkpoints fill.
std::vector<const plan::StateTensor *> copiesOfParameters(const plan::Bucket &bucket);

// Elements [at, at + count) of a tensor of the state: body(first, values) gives those from at + first on in f32, and they are rounded to
// the tensor's type.
void writeNumbers(State &state, const plan::StateTensor &tensor, uint64_t at, uint64_t count,
                  const std::function<void(uint64_t first, std::span<float> values)> &body);

// What a rank needs to move model state in and out of files.
struct Rank {
  const plan::Plan &plan;
  uint64_t rank;
  State &state;               // the engine's
  Communicator &communicator; // barriers and agreement, on the calling thread
};

} // namespace zero::runtime
