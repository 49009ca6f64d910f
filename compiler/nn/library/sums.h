//===- sums.h - sums of columns that a product makes beside its result ----------------------------===//
// A product op(A) · op(B) sums over k what it reads. Where A or B is stored as [k, columns], a library can add up its columns in the same
// pass: gradients of a weight and of its bias. In nn the sums stay a launch of their kernel, which means the same; the launch that
// nn-sum-in-products has marked and put right after its product becomes part of that when steps are made of both.
#pragma once
#include "compiler/nn/Nn.h"

namespace zero::nn {

/// Attribute of such a launch.
inline constexpr const char *kInProduct = "nn.in_product";

/// Products of the launch's block that sum over the first dimension of what it reads, in their order.
llvm::SmallVector<MatMulOp> productsSumming(LaunchOp launch);
/// 0 or 1: which operand of such a product is what the launch reads; 2: none.
unsigned summedOperand(MatMulOp product, LaunchOp launch);

/// The product that makes the result of a marked launch: the last of those before it; null for any other launch.
MatMulOp productOf(LaunchOp launch);
/// The marked launch whose result the product makes; null if there is none.
LaunchOp sumsBeside(MatMulOp product);

} // namespace zero::nn
