//===- groups.h - rows put into groups, for products with a matrix of each --------------------------------===//
#pragma once
#include "compiler/nn/build.h"

namespace zero::raise {

/// Slots of blocks are found by numbers that f32 holds exactly.
inline constexpr int64_t kMostGroupedRows = int64_t(1) << 24;

/// How high blocks are: so that a group of average size fills `each` of them, and `height` at most. Lower ones read each matrix more often,
/// higher ones have more empty slots.
struct Blocks {
  int64_t height, each;
};

/// Where rows go that belong to these groups, `group` [rows]: found out once for all products of them.
nn::GroupRowsOp groupRows(mlir::Value group, int64_t groups, Blocks blocks, mlir::OpBuilder &b);

} // namespace zero::raise
