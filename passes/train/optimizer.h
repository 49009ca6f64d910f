//===- optimizer.h - the optimizer as kernels --------------------------------------------------------===//
// Each function adds a private `func.func` with the attribute nn.kernel to the module, in primitives of nn, for a
// piece of model state seen as [rows, cols] of f32. Everything is elementwise but one sum per row, so a kernel is one
// pass over memory; what depends on the hyper-parameters alone is computed once, on tensors of one element.
#pragma once
#include "compiler/nn/Nn.h"

namespace zero::train {

enum class OptimizerKind { AdamW, SGD };

/// Tensors of state per parameter: AdamW the two moments, SGD the momentum.
inline int64_t statesOf(OptimizerKind kind) { return kind == OptimizerKind::AdamW ? 2 : 1; }

struct UpdateForm {
  bool clips = false;
  bool scaled = false;          // clips too: the gradient is that of a scaled loss
  mlir::Type compute = nullptr; // of the parameters' second copy, if there is one
  bool apart = false;           // the gradient's squares are summed elsewhere, though nothing waits for them
};

/// One optimizer step, as torch.optim.AdamW or torch.optim.SGD (dampening 0) do it:
///   (param, grad, states…, hyper f32[16], [norm2 f32[1] if clips]) -> (param, states…, [param rounded to `compute`], [sums f32[rows]
///   unless clips or apart])
/// `hyper` is laid out as HyperIndex of runtime/plan/plan.proto says. `norm2` is the squared global gradient norm: the
/// gradient is scaled as torch.nn.utils.clip_grad_norm_ does. `sums` are the squared gradients per row, from which that
/// norm is made when nothing waits for it. If `scaled`, gradients are multiplied by the inverse of the loss scale, and as
/// torch.amp.GradScaler does, nothing changes if one of them is not finite, which a norm that is not finite says.
mlir::func::FuncOp buildUpdateKernel(mlir::ModuleOp module, llvm::StringRef name, OptimizerKind kind, int64_t rows, int64_t cols,
                                     const UpdateForm &form);
/// (grad) -> f32[rows]: the sum of squares of each row.
mlir::func::FuncOp buildSumSquaresKernel(mlir::ModuleOp module, llvm::StringRef name, int64_t rows, int64_t cols);
/// (param) -> param rounded to `type`.
mlir::func::FuncOp buildRoundKernel(mlir::ModuleOp module, llvm::StringRef name, int64_t rows, int64_t cols, mlir::Type type);
/// (accumulated, grad) -> accumulated + grad.
mlir::func::FuncOp buildAccumulateKernel(mlir::ModuleOp module, llvm::StringRef name, int64_t rows, int64_t cols);

} // namespace zero::train
