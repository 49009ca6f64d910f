#include "runtime/comm/communicator.h"
#include "runtime/comm/local/local.h"
#include "runtime/comm/mpi/mpi.h"
#include "runtime/plan/error.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <thread>

namespace zero::runtime {
namespace {

// A positive number in the environment, or 0.
long numberOf(const char *name) {
  const char *value = std::getenv(name);
  return value ? std::strtol(value, nullptr, 10) : 0;
}

// Whether srun started this process; a batch script outside a step has the job's variables only.
bool inSlurmStep() { return std::getenv("SLURM_STEP_ID") && std::getenv("SLURM_PROCID"); }

// What a launcher says about this process. mpirun inside a job of Slurm counts as mpirun.
struct Launch {
  long processes = 1, rank = 0;
  bool bySrun = false, byMpi = false;
};

Launch readLaunch() {
  if (long size = numberOf("OMPI_COMM_WORLD_SIZE"); size > 0) return {size, numberOf("OMPI_COMM_WORLD_RANK"), false, true};
  if (inSlurmStep()) return {std::max(1l, numberOf("SLURM_STEP_NUM_TASKS")), numberOf("SLURM_PROCID"), true, false};
  if (long size = numberOf("PMI_SIZE"); size > 0) return {size, numberOf("PMI_RANK"), false, true};
  if (long size = numberOf("WORLD_SIZE"); size > 0) return {size, numberOf("RANK"), false, false};
  return {};
}

std::unique_ptr<CommunicatorFactory> connectSeveral(const Launch &launch) {
  if (launch.bySrun && !std::getenv("PMIX_RANK") && !std::getenv("PMI_RANK") && !std::getenv("PMI_FD"))
    throw Error(fmt::format("srun started {} tasks that cannot find each other, because it was given no --mpi; start with srun --mpi=pmix "
                            "-n {} zerorun …, or mpirun -np {} zerorun …",
                            launch.processes, launch.processes, launch.processes));
  std::unique_ptr<CommunicatorFactory> factory = connectMpi();
  // Otherwise every process would train alone, and write the same files.
  if (factory->world() != launch.processes)
    throw Error(fmt::format("{} started {} processes, but the MPI that zerorun uses sees {}; start it with the launcher of that MPI",
                            launch.bySrun ? "srun" : "the launcher", launch.processes, factory->world()));
  return factory;
}

} // namespace

std::unique_ptr<CommunicatorFactory> connect() {
  Launch launch = readLaunch();
  if (launch.processes > 1 && (launch.byMpi || launch.bySrun)) return connectSeveral(launch);
  if (launch.processes > 1)
    throw Error(fmt::format("WORLD_SIZE={} in the environment asks for ranks that find each other through MASTER_ADDR, which is not built "
                            "yet; start with: mpirun -np {} zerorun …, or unset WORLD_SIZE",
                            launch.processes, launch.processes));
  return connectLocal();
}

void complainOnce(const std::string &line) {
  std::fflush(stdout);
  if (readLaunch().rank == 0)
    fmt::print(stderr, "{}\n", line);
  else // a launcher ends all ranks when the first one ends: not before the first rank has spoken
    std::this_thread::sleep_for(std::chrono::seconds(3));
}

} // namespace zero::runtime
