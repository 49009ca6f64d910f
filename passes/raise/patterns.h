//===- patterns.h - pattern sets that several raising passes share -----------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"
#include "mlir/IR/PatternMatch.h"

namespace zero::raise {

/// Everything of nn-simplify and nn-tidy-import.
void populateTidyPatterns(mlir::RewritePatternSet &patterns);

/// On existing nn.attention: repeated heads once, repeated masks where they are stored.
void populateAttentionFormPatterns(mlir::RewritePatternSet &patterns);

/// On existing nn.attention: what a mask hides whatever the data says becomes `causal` or `band`, one of zeros vanishes, and others lose
/// dimensions along which they do not change.
void simplifyMasks(mlir::func::FuncOp function);

/// Runs patterns to the fixed point over a function that is not a kernel.
mlir::LogicalResult applyPatterns(mlir::func::FuncOp function, mlir::RewritePatternSet &&patterns);

/// Removes operations whose results nobody reads.
void eraseDead(mlir::func::FuncOp function);

} // namespace zero::raise
