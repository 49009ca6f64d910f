//===- slack.h - live ranges that leave other lanes time ------------------------------------------------===//
// Plain data. In the order of steps a buffer that is copied away, or summed over ranks, is free after that step, and one that is fetched
// or gathered is taken only with it. In time, lanes run apart: a write-back is under way while lane compute is steps ahead, and a fetch
// could begin before its step is reached. Whoever is given the same bytes next to such a step has to wait for it. Where fewer bytes are
// live than at the fullest step, a buffer can as well be live for longer, and nobody is given its bytes.
#pragma once
#include "passes/place/offsets.h"

namespace zero::place {

/// Whether a transfer (a copy between tiers, or a collective) begins a buffer, and ends it: then it is better live earlier, and later.
struct TransferEnds {
  bool begins = false, ends = false;
};

/// Live ranges of a program of `steps` steps, made longer by `reach` steps at most at the ends that transfers have, as long as the sums
/// of live bytes stay below the largest. `transfers` is in the order of the buffers. Room goes to those that begin first.
OffsetProblem withSlack(OffsetProblem problem, const std::vector<TransferEnds> &transfers, int64_t steps, int64_t reach);

} // namespace zero::place
