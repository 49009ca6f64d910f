// Rank 0's part of a rendezvous.
#pragma once
#include "runtime/comm/tcp/rendezvous.h"

namespace zero::runtime {

// Waits for all other ranks and tells them of each other. Throws a sentence if the start fails, after having sent it to all that
// have come.
Meeting gather(const Membership &membership);

// Refuses all that come until then, with this sentence; ends when all ranks have.
void turnAway(const Membership &membership, const std::string &sentence, Deadline until);

} // namespace zero::runtime
