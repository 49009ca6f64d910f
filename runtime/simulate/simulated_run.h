//===- simulated_run.h - zerorun --simulate ---------------------------------------------------------------===//
// A run of the plan on machines that are described instead of there: all ranks, in one process, in virtual time. Nothing is computed, so
// there is neither data nor a loss.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace zero::simulate {

struct SimulatedRun {
  std::string plan, machine; // of the machine a name or a file (cluster.h)
  std::optional<uint64_t> steps;
  bool clips = false;
  uint64_t seed = 0;
  std::optional<std::string> metrics, trace; // as a run's, without what only training knows
};

/// Says on standard output how long steps take and what they wait for. Throws zero::Error where the description, the plan or a file for
/// results is not as it must be, and where the ranks' memory is too small for the plan.
void simulateRun(const SimulatedRun &run);

} // namespace zero::simulate
