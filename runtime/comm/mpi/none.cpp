// In place of mpi.cpp in programs that are carried to machines whose MPI is unknown (cmake/Portable.cmake).
#include "runtime/base/error.h"
#include "runtime/comm/mpi/mpi.h"

namespace zero::runtime {

std::unique_ptr<CommunicatorFactory> connectMpi() {
  throw Error("this zerorun was built without MPI; start its ranks with torchrun, or with RANK, WORLD_SIZE and MASTER_ADDR in their "
              "environment, and not with mpirun or srun --mpi");
}

} // namespace zero::runtime
