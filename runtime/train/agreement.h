// What ranks must have alike, and what they decide together.
#pragma once
#include "runtime/comm/collectively.h"
#include "runtime/train/settings.h"

namespace zero::runtime {

// Collective. If a setting has another value on one rank than on another, rank 0 throws CollectiveError with a sentence that names the
// setting and the ranks with their values, and all others throw ReportedElsewhere.
void requireSame(Communicator &communicator, const Settings &mine);

// The largest of the ranks' values.
uint8_t largest(Communicator &communicator, uint8_t mine);

} // namespace zero::runtime
