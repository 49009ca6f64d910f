// Rank 0's part of a rendezvous.
#pragma once
#include "runtime/comm/tcp/rendezvous.h"

namespace zero::runtime {

// Waits for all other ranks and tells them of each other. Throws a sentence if the start fails, after having sent it to all that
// have come.
Meeting gather(const Membership &membership);

} // namespace zero::runtime
