//===- logits.h - the way from a product to its cross-entropy ----------------------------------------===//
// Private to the passes that make fewer or more classes at once than the model has.
#pragma once
#include "compiler/nn/build.h"

namespace zero::train {

/// A product whose results a cross-entropy reads as logits, after views and what models do to each of them alone: a bias of each class, a
/// scale, a cap (`c tanh(x / c)`).
struct Logits {
  nn::CrossEntropyOp loss;
  llvm::SmallVector<mlir::Operation *> path; // from the product to the loss, both included
  std::string whole;                         // why they have to exist whole; empty if they need not

  /// Logits made of `scores`, a tensor rows × any number of classes: each operation between the product and the loss once more, on these.
  /// `classesOf` gives as many numbers from the tensor of one number per class. Views are left out.
  mlir::Value from(mlir::OpBuilder &builder, mlir::Value scores, llvm::function_ref<mlir::Value(nn::Build, mlir::Value)> classesOf) const;
};

/// None where the path has anything else, such as an operation that reads several classes. What is on it is finite, and so is its gradient,
/// where the product's results and the numbers of a class are zero.
std::optional<Logits> logitsOf(nn::MatMulOp product);

} // namespace zero::train
