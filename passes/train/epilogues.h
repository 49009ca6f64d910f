//===- epilogues.h - what products can do beside multiplying, as passes find it ----------------------------===//
// Private to nn-gelu-in-products and nn-logits-in-products.
#pragma once
#include "compiler/nn/rows.h"

namespace zero::train {

/// A product and a vector that is added to each of its rows, where nothing but the sum reads the product and a library can do both at once.
struct BiasedProduct {
  nn::MatMulOp product;
  mlir::Value bias;
  mlir::Operation *sum = nullptr;
};

/// The product that `v` has the elements of, if nobody else reads it and a library can make more of it; or null.
nn::MatMulOp plainProductOf(mlir::Value v);
/// What `v` is a view of; all null if it is no such sum.
BiasedProduct biasedProductOf(mlir::Value v);
/// Erases an operation that nobody reads, with what nobody reads any more then.
void eraseWithUnused(mlir::Operation *op);

} // namespace zero::train
