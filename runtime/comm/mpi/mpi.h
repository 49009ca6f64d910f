// A world of MPI: messages between pairs of ranks; the collectives over them are ours (collectives.h), whose sums run in rank
// order, where the order of MPI's depends on the algorithm it picks.
#pragma once
#include "runtime/comm/communicator.h"

namespace zero::runtime {

std::unique_ptr<CommunicatorFactory> connectMpi();

// Largest single message; MPI counts are 32-bit. Smaller values are for tests.
void setMpiMessageLimit(uint64_t bytes);

} // namespace zero::runtime
