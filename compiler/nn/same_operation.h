//===- same_operation.h - operations that compute the same of the same operands ----------------------===//
#pragma once
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/DenseSet.h"

namespace zero::nn {

/// For sets in which one operation stands for all that are equal to it, wherever they come from (common-subexpression elimination). Of
/// commutative operations the order of operands does not count.
struct SameOperation : llvm::DenseMapInfo<mlir::Operation *> {
  static unsigned getHashValue(const mlir::Operation *op) {
    return mlir::OperationEquivalence::computeHash(const_cast<mlir::Operation *>(op), mlir::OperationEquivalence::directHashValue,
                                                   mlir::OperationEquivalence::ignoreHashValue,
                                                   mlir::OperationEquivalence::IgnoreLocations);
  }
  static bool isEqual(const mlir::Operation *x, const mlir::Operation *y) {
    if (x == y) return true;
    if (x == getTombstoneKey() || x == getEmptyKey() || y == getTombstoneKey() || y == getEmptyKey()) return false;
    return mlir::OperationEquivalence::isEquivalentTo(const_cast<mlir::Operation *>(x), const_cast<mlir::Operation *>(y),
                                                      mlir::OperationEquivalence::IgnoreLocations);
  }
};
using DistinctOperations = llvm::DenseSet<mlir::Operation *, SameOperation>;

} // namespace zero::nn
