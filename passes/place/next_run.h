//===- next_run.h - buffers that are in use while the program runs again ------------------------------===//
#pragma once
#include "passes/place/arenas.h"
#include "passes/place/offsets.h"

namespace zero::place {

/// Where a step's updates run beside the forward of the next one (plan-overlap-updates), which is the same program: of the buffers they
/// work on, the steps of that beside which they may do so (OffsetBuffer::nextLast). False if there are none. `writeWork`: multiply-adds
/// while a byte is written to disk, for those that are written after all updates (plan-defer-writes).
bool addNextRun(planir::ProgramOp program, llvm::ArrayRef<planir::BufferOp> buffers, int64_t writeWork, OffsetProblem &problem);

} // namespace zero::place
