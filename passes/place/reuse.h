//===- reuse.h - the bytes that transfers are given -----------------------------------------------------===//
// Plain data. A transfer to the device (a fetch, a gather) can begin as soon as nobody needs the bytes it goes to any more, however far
// compute is behind; and whoever is given the bytes of one away from it has to wait for that one. In a low arena many places would do. The
// best is the one whose bytes have rested longest, over the end of the step as well, since lanes run on from one into the next.
#pragma once
#include "passes/place/slack.h"

namespace zero::place {

/// Gives each buffer that a transfer begins or ends a place below `height`, at which the fewest steps between such a transfer and what uses
/// the same bytes next to it are as many as there can be. Of a program of `steps` steps; `transfers` is in the order of the buffers. Where
/// other buffers lie is left as it is.
void restBytes(const OffsetProblem &problem, const std::vector<TransferEnds> &transfers, int64_t steps, Bytes height,
               OffsetSolution &solution);

} // namespace zero::place
