//===- arrivals.h - what comes to a memory for a while ----------------------------------------------===//
#pragma once
#include "passes/schedule/order.h"

namespace zero::schedule {

/// Steps that bring something of a bucket into buffers of the program, one after the other: an all-gather, a copy from another tier, or
/// that copy and the all-gather of what it brought.
struct Arrival {
  llvm::SmallVector<planir::StepOp, 2> steps;
  llvm::SmallVector<mlir::Value, 3> sources; // !plan.buffer, persistent
  llvm::SmallVector<mlir::Value, 3> buffers; // that it fills
  int64_t issued, lastUse; // positions of the first step, and of the last one that touches its buffers, or what is gathered
  int64_t bytes;           // of the buffers
  std::string bucket;
};

/// Of parameters that are whole while they are used, in the order of their steps.
std::vector<Arrival> gathersOf(planir::ProgramOp program, const Order &order);
/// Of what else comes from another tier to the device, or to the host: for each step that needs some, all of it.
std::vector<Arrival> fetchesOf(planir::ProgramOp program, const Order &order, state::Tier memory = state::Tier::device);

/// What it reads; nobody has touched its own buffers before it.
llvm::SmallVector<planir::Access, 6> readBy(const Arrival &arrival);

/// How much of what was brought early may be on the device at once: others beside the one in use, or `bytes` in all if that is not 0; by
/// how many steps of lane compute it may be early, if that is not 0; and in how many bytes more than one other must find room, if that is
/// not 0.
struct HoistLimit {
  int64_t ahead, bytes = 0, steps = 0, severalBytes = 0;
};
/// Moves arrivals up, each to the earliest step from which, until its old place, the limit holds. Their order stays, and none moves before
/// a step that writes what it reads. `moved` hears of each by how many steps and from where on. Yields how many moved.
int64_t hoist(const Order &order, llvm::ArrayRef<Arrival> arrivals, HoistLimit limit,
              llvm::function_ref<void(const Arrival &, int64_t steps, llvm::StringRef from)> moved);

} // namespace zero::schedule
