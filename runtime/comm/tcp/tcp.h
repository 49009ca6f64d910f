// A world of processes that a launcher gave RANK, WORLD_SIZE and MASTER_ADDR, over plain TCP connections; no MPI takes part.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/comm/tcp/rendezvous.h"

namespace zero::runtime {

// For two ranks or more.
std::unique_ptr<CommunicatorFactory> connectTcp(const Membership &membership);

} // namespace zero::runtime
