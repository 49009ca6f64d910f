// A world of one: nothing moves but what must be copied, and no MPI is started.
#pragma once
#include "runtime/comm/communicator.h"

namespace zero::runtime {

std::unique_ptr<CommunicatorFactory> connectLocal();

} // namespace zero::runtime
