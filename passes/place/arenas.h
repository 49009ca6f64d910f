//===- arenas.h - the steps of a placed program as plain data ---------------------------------------===//
#pragma once
#include "compiler/plan/Plan.h"
#include "passes/place/waits.h"

namespace zero::place {

inline constexpr int kTiers = 3;

/// The persistent arenas of the tiers, and after them the transient ones.
enum Arena { DeviceState = 0, HostState = 1, DiskState = 2, Work = kTiers, HostWork, DiskWork };
const char *arenaName(Arena arena);

/// Where the buffers of a module lie, and what its steps touch there.
class Arenas {
public:
  explicit Arenas(mlir::ModuleOp module);

  struct Home {
    Arena arena;
    int64_t offset, bytes;
  };
  /// Empty, with an error at the buffer, if it has not been placed.
  std::optional<Home> homeOf(mlir::Value buffer);
  /// The steps of a program with the bytes they touch on all ranks. Fails, with an error, where a buffer is not placed.
  mlir::FailureOr<std::vector<LaneStep>> stepsOf(planir::ProgramOp program);
  /// The same with what the host does on lane compute: the inputs are written in front of them, the results read after them.
  mlir::FailureOr<std::vector<LaneStep>> withHost(planir::ProgramOp program);

private:
  int64_t world;
  llvm::DenseMap<mlir::StringAttr, planir::StateOp> states;
};

} // namespace zero::place
