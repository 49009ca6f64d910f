//===- gathers.h - the gathers of a program ---------------------------------------------------------===//
#pragma once
#include "passes/schedule/order.h"

namespace zero::schedule {

/// An all-gather of parameters into a buffer of the program.
struct Gather {
  planir::CollectiveStep step;
  mlir::Value shard, whole; // !plan.buffer
  int64_t issued, lastUse;  // positions
  int64_t bytes;            // of `whole`
  std::string bucket;
};

/// In the order of their steps.
std::vector<Gather> gathersOf(planir::ProgramOp program, const Order &order);

} // namespace zero::schedule
