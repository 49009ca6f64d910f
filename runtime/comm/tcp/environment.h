// What launchers such as torchrun say in the environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
#pragma once
#include "runtime/comm/tcp/rendezvous.h"
#include <optional>

namespace zero::runtime {

// Whether WORLD_SIZE, RANK and MASTER_ADDR are all there, whatever they say.
bool environmentIsComplete();
// Whether torchrun started this process; it may itself have been started by mpirun or srun, once per machine.
bool startedByTorchrun();

// Nothing if the environment says nothing of ranks. Throws a sentence for what cannot be meant.
std::optional<Membership> membershipFromEnvironment();

} // namespace zero::runtime
