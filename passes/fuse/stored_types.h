//===- stored_types.h - which type each value of a function is stored in -----------------------------------===//
// The decision of nn-mixed-precision, as data: it changes nothing. Inside a kernel everything is f32; what is decided is the type of
// what lies in memory between kernels, products and attention.
#pragma once
#include "compiler/nn/Nn.h"
#include "llvm/ADT/DenseSet.h"

namespace zero::fuse {

/// Values of f32 that are stored in bf16, views (nn.reshape) aside: parameters, and what products, attention and kernels compute, but for
///   - gradients of parameters, what is added up to one, and what the function returns,
///   - statistics: results of reductions, and what kernels make of them alone (unless a product wants them),
///   - what a kernel adds up in memory,
///   - masks, the row sums of attention, single numbers.
llvm::DenseSet<mlir::Value> storedInHalf(mlir::func::FuncOp function, mlir::SymbolTable &kernels);

/// Operands of a product or of attention that are read in bf16, and those (a mask, row sums) that are read in f32.
llvm::SmallVector<mlir::OpOperand *> halfOperands(mlir::Operation *op);

} // namespace zero::fuse
