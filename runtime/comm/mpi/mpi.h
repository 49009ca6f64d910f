// Collectives over MPI's point-to-point messages. The sums are made here, in rank order, not by MPI, whose order depends
// on the algorithm it picks.
#pragma once
#include "runtime/comm/communicator.h"

namespace zero::runtime {

std::unique_ptr<CommunicatorFactory> connectMpi();

// Largest single message; MPI counts are 32-bit. Smaller values are for tests.
void setMpiMessageLimit(uint64_t bytes);

// Seconds between two looks at ranks that are waited for, and until the first sentence about them (mpi/patience.h). For
// communicators made afterwards; for tests.
void setMpiPatience(double look, double speak);

} // namespace zero::runtime
