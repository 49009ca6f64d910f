//===- uses.h - what a micro-step does with each bucket ---------------------------------------------------===//
#pragma once
#include "compiler/zero/Zero.h"
#include "llvm/ADT/MapVector.h"

namespace zero::shard {

/// Buckets used between two uses of another that is kept meanwhile (zero-merge-gathers).
inline constexpr int64_t kMergeDistance = 1;

struct Uses {
  int64_t visits = 0;  // times its parameters come to the device if they do not rest there: uses near each other are one
  int64_t changed = 0; // the later, the fewer operations stand behind its last gradient, in whose time its update can hide; 0: not trained
};

/// Of each bucket, by name, in a module that zero-partition leaves. Fails, with an error, without @train.
mlir::FailureOr<llvm::MapVector<mlir::StringAttr, Uses>> usesOf(mlir::ModuleOp module);

} // namespace zero::shard
