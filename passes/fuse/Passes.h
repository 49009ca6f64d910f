//===- Passes.h - the fuse phase -----------------------------------------------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace zero::fuse {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/fuse/Passes.h.inc"

/// Attribute of the module that nn-rematerialize leaves: blocks of which something is made again, blocks, bytes kept for backward, bytes
/// that backward reads of forward, multiply-adds that are made again, and those of the step without them (of one micro-step).
inline constexpr const char *kRematerialized = "nn.rematerialized";

struct Options {
  std::string precision = "f32"; // name of the element type of what lies in memory between kernels
  std::string gradients = "f32"; // and of that in which gradients are handed over
  bool epilogues = false;        // the target's library adds a bias to what it multiplies
  bool blocks = true;            // it multiplies blocks of rows by the matrices of their groups
  int64_t world = 1;             // ranks
  bool rowsApart = false;   // the target can update rows of tables apart from the rest: one rank adds them by launches of their own, too
  bool manyThreads = false; // of the target: more than few columns can keep busy
};
/// From primitives to launches of kernels.
void buildPipeline(mlir::OpPassManager &pm, const Options &options);
/// After it, once or (on copies) to try it: keep at most so many bytes of activations for backward.
void addRematerialization(mlir::OpPassManager &pm, uint64_t keepBytes);
/// After that: attention by kernels of the plan's own, for a GPU with products of warpgroups or without.
void addAttentionKernels(mlir::OpPassManager &pm, bool warpgroups);
/// All passes, and the phase as `zero-fuse-pipeline`.
void registerPasses();
} // namespace zero::fuse
