//===- patterns.h - the pattern sets of this room --------------------------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"
#include "mlir/IR/PatternMatch.h"

namespace zero::raise {

/// Everything of nn-simplify and nn-tidy-import.
void populateTidyPatterns(mlir::RewritePatternSet &patterns);

/// On existing nn.attention: constant masks, causal triangles, repeated heads.
void populateAttentionFormPatterns(mlir::RewritePatternSet &patterns);

/// Runs patterns to the fixed point over a function that is not a kernel.
mlir::LogicalResult applyPatterns(mlir::func::FuncOp function, mlir::RewritePatternSet &&patterns);

} // namespace zero::raise
