//===- outline.h - clusters to functions and launches ----------------------------------------------------===//
#pragma once
#include "passes/fuse/clusters.h"
#include "passes/fuse/kernel_table.h"

namespace zero::fuse {

/// Rewrites the function; returns the number of launches, or fails with an error.
mlir::FailureOr<int64_t> outline(mlir::func::FuncOp function, const Clusters &clusters, KernelTable &kernels);

} // namespace zero::fuse
