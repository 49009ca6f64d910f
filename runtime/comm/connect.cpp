#include "runtime/comm/communicator.h"
#include "runtime/comm/local/local.h"
#include "runtime/comm/mpi/mpi.h"
#include "runtime/plan/error.h"
#include <cstdlib>

namespace zero::runtime {
namespace {

// A positive number in the environment, or 0.
long numberOf(const char *name) {
  const char *value = std::getenv(name);
  return value ? std::strtol(value, nullptr, 10) : 0;
}

// Whether a launcher that MPI knows started this process as one of several.
bool launchedByMpi() {
  if (numberOf("OMPI_COMM_WORLD_SIZE") > 1 || numberOf("PMI_SIZE") > 1) return true;
  // srun sets the step's variables; a batch script outside a step has only the job's.
  return std::getenv("SLURM_STEP_ID") && std::getenv("SLURM_PROCID") && numberOf("SLURM_STEP_NUM_TASKS") > 1;
}

} // namespace

std::unique_ptr<CommunicatorFactory> connect() {
  if (launchedByMpi()) return connectMpi();
  if (long world = numberOf("WORLD_SIZE"); world > 1)
    throw Error(
        "WORLD_SIZE=" + std::to_string(world) +
        " in the environment asks for ranks that find each other through MASTER_ADDR, which is not built yet; start with: mpirun -np " +
        std::to_string(world) + " zerorun …, or unset WORLD_SIZE");
  return connectLocal();
}

} // namespace zero::runtime
