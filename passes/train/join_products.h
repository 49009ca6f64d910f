//===- join_products.h - many products of few rows as one ----------------------------------------------===//
#pragma once
#include "compiler/nn/build.h"

namespace zero::train {

/// Such products that are summed are worth one of all their rows.
inline constexpr size_t kManyProducts = 8;

/// Whether a product sums over rows so few that its operands take much less than it does: the gradient of weights of one step of a loop
/// over time that is unrolled.
bool hasFewRows(nn::MatMulOp product);

/// The sum of such products, which is that of their operands below each other, in the order of `products`.
mlir::Value joinProducts(nn::Build b, llvm::ArrayRef<nn::MatMulOp> products);

} // namespace zero::train
