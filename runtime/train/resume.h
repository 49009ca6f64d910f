// Which checkpoint a run goes on from. Rank 0 looks and chooses, and the others are told: ranks that looked for themselves might see
// different folders.
#pragma once
#include "runtime/checkpoint/frozen.h"
#include "runtime/train/setup.h"

namespace zero::runtime {

// Collective. Makes and locks the folder of --checkpoint and removes what killed runs have left there, and only then looks what can be
// resumed (setup.candidates). Throws as collectively() does (comm/collectively.h).
void chooseCheckpoints(const TrainOptions &options, Communicator &communicator, Setup &setup);

// Collective. Fills the ranks' memory from the newest candidate that is whole (setup.resumedFrom) and returns where it stands. Each one
// before it is said to be damaged.
Progress resume(const Rank &rank, const FrozenSums &frozen, Setup &setup);

// Throws a sentence for a flag that the run which is resumed at `at` cannot go on with.
void checkResumed(const TrainOptions &options, const Setup &setup, const Progress &at);

} // namespace zero::runtime
