#include "runtime/base/error.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/local/local.h"
#include "runtime/comm/mpi/mpi.h"
#include "runtime/comm/tcp/environment.h"
#include "runtime/comm/tcp/tcp.h"
#include "runtime/process/streams.h"
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

// What a launcher says about this process; the innermost one counts. mpirun inside a job of Slurm is mpirun, torchrun inside of
// either is torchrun. Otherwise MPI comes before RANK and WORLD_SIZE, which scripts set for other programs, too.
struct Launch {
  long processes = 1, rank = 0;
  enum By { Nobody, Mpi, Srun, Environment } by = Nobody;
};

bool srunGaveMpi() { return std::getenv("PMIX_RANK") || std::getenv("PMI_RANK") || std::getenv("PMI_FD"); }

Launch readLaunch() {
  Launch environment{numberOf("WORLD_SIZE"), numberOf("RANK"), Launch::Environment};
  if (startedByTorchrun()) return environment;
  if (long size = numberOf("OMPI_COMM_WORLD_SIZE"); size > 0) return {size, numberOf("OMPI_COMM_WORLD_RANK"), Launch::Mpi};
  if (inSlurmStep()) {
    Launch step{std::max(1l, numberOf("SLURM_STEP_NUM_TASKS")), numberOf("SLURM_PROCID"), Launch::Srun};
    return environmentIsComplete() && (step.processes == 1 || !srunGaveMpi()) ? environment : step;
  }
  if (long size = numberOf("PMI_SIZE"); size > 0) return {size, numberOf("PMI_RANK"), Launch::Mpi};
  return environment;
}

std::unique_ptr<CommunicatorFactory> connectSeveral(const Launch &launch) {
  if (launch.by == Launch::Srun && !srunGaveMpi())
    throw Error(fmt::format("srun started {} tasks that cannot find each other, because it was given no --mpi; start with srun --mpi=pmix "
                            "-n {} zerorun …, or mpirun -np {} zerorun …, or set RANK, WORLD_SIZE and MASTER_ADDR for each task",
                            launch.processes, launch.processes, launch.processes));
  std::unique_ptr<CommunicatorFactory> factory = connectMpi();
  // Otherwise every process would train alone, and write the same files.
  if (factory->world() != launch.processes)
    throw Error(fmt::format("{} started {} processes, but the MPI that zerorun uses sees {}; start it with the launcher of that MPI",
                            launch.by == Launch::Srun ? "srun" : "the launcher", launch.processes, factory->world()));
  return factory;
}

} // namespace

std::unique_ptr<CommunicatorFactory> connect() {
  Launch launch = readLaunch();
  if (launch.by == Launch::Environment) {
    try {
      std::optional<Membership> membership = membershipFromEnvironment();
      return membership && membership->world > 1 ? connectTcp(*membership) : connectLocal();
    } catch (const Error &error) {
      throw RankError(error.what());
    }
  }
  if (launch.processes > 1) return connectSeveral(launch);
  return connectLocal();
}

void CommunicatorFactory::sayLast(const std::string &line) { complain(line); }

void complainOnce(const std::string &line) {
  std::fflush(stdout);
  if (readLaunch().rank == 0)
    complain(line);
  else // a launcher ends all ranks when the first one ends: not before the first rank has spoken
    std::this_thread::sleep_for(std::chrono::seconds(3));
}

} // namespace zero::runtime
