//===- groups.h - rows put into groups, for products with a matrix of each --------------------------------===//
#pragma once
#include "compiler/nn/build.h"

namespace zero::raise {

/// Slots of blocks are found by numbers that f32 holds exactly.
inline constexpr int64_t kMostGroupedRows = int64_t(1) << 24;

/// Where rows go that belong to these groups, `group` [rows]: found out once for all products of them. Blocks are as high as a group has
/// rows on average, `height` at most: lower ones read each matrix more often, higher ones have more empty slots.
nn::GroupRowsOp groupRows(mlir::Value group, int64_t groups, int64_t height, mlir::OpBuilder &b);

} // namespace zero::raise
