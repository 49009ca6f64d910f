//===- stored_types.h - which type each value of a function is stored in -----------------------------------===//
// The decision of nn-mixed-precision, as data: it changes nothing. Inside a kernel everything is f32; what is decided is the type of
// what lies in memory between kernels, products and attention.
#pragma once
#include "compiler/nn/Nn.h"

namespace zero::fuse {

/// "f32", "bf16" or "f16"; null for any other name.
mlir::Type storedType(llvm::StringRef name, mlir::MLIRContext *context);

/// Element types: of parameters and activations, and of gradients of parameters as they are handed over.
struct StoredTypes {
  mlir::Type activations, gradients;
};

/// Values of f32 that are stored in fewer bytes, and in which type, views (nn.reshape) aside: as `types.activations` parameters, and what
/// products, attention and kernels compute, but for
///   - gradients of parameters, what is added up to one, and what the function returns,
///   - statistics: results of reductions, sums of exponentials of attention, and what this kernel or others make of
///     them alone (unless a product wants them),
///   - what a kernel adds up in memory,
///   - masks and biases of attention and the gradients of these, the row sums of attention, single numbers.
/// As `types.gradients` a gradient of a parameter that nobody else reads, where what computes it can round it.
llvm::DenseMap<mlir::Value, mlir::Type> narrowedValues(mlir::func::FuncOp function, mlir::SymbolTable &kernels, const StoredTypes &types);

/// Operands of a product or of attention that are read as activations are stored, and those that are read in f32: what is added to a
/// product, and to scores. Row sums are neither, since they are f32 anyway.
llvm::SmallVector<mlir::OpOperand *> halfOperands(mlir::Operation *op);
llvm::SmallVector<mlir::OpOperand *> singleOperands(mlir::Operation *op);

} // namespace zero::fuse
