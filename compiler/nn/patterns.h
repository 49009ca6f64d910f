//===- patterns.h - identities of the nn dialect ---------------------------------------------------===//
// Rewrites that never make a program worse, for every pass that wants a tidy graph (use them with
// applyPatternsAndFoldGreedily). None needs arithmetic on tensors of many different numbers: that is constant
// folding with the evaluator.
#pragma once
#include "mlir/IR/PatternMatch.h"

namespace zero::nn {

/// Arithmetic: x * 1, x + 0, x - 0, 0 - x, x / 1, -(-x), x * c * d, small powers, operations on equal numbers only,
/// selections decided beforehand; an elementwise operation whose operands are all repeated alike is done before repeating.
void populateArithmeticPatterns(mlir::RewritePatternSet &patterns);

/// Movement: broadcasts, transposes, slices and casts that compose, do nothing, or act on one repeated number;
/// reductions of repeated values; transposes of matrices become flags of the product.
void populateMovementPatterns(mlir::RewritePatternSet &patterns);

/// Both.
inline void populateSimplifyPatterns(mlir::RewritePatternSet &patterns) {
  populateArithmeticPatterns(patterns);
  populateMovementPatterns(patterns);
}

} // namespace zero::nn
