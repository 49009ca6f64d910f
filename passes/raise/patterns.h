//===- patterns.h - the pattern sets of this room --------------------------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"
#include "mlir/IR/PatternMatch.h"

namespace zero::raise {

/// Everything of nn-simplify and nn-tidy-import.
void populateTidyPatterns(mlir::RewritePatternSet &patterns);

/// On existing nn.attention: repeated heads once, repeated masks where they are stored.
void populateAttentionFormPatterns(mlir::RewritePatternSet &patterns);

/// On existing nn.attention: a constant mask becomes `causal`, vanishes, or loses dimensions along which it does not change.
void simplifyConstantMasks(mlir::func::FuncOp function);

/// Query i sees keys i + first to i + last.
struct Band {
  int64_t first, last;
};
/// What the constant mask of an nn.attention says, if it says that and nothing else: a sliding window.
std::optional<Band> bandOf(nn::AttentionOp op);

/// Runs patterns to the fixed point over a function that is not a kernel.
mlir::LogicalResult applyPatterns(mlir::func::FuncOp function, mlir::RewritePatternSet &&patterns);

/// Removes operations whose results nobody reads.
void eraseDead(mlir::func::FuncOp function);

} // namespace zero::raise
