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

/// From primitives to launches of kernels. `half`: what lies in memory between them is rounded to bf16.
void buildPipeline(mlir::OpPassManager &pm, bool half = false);
/// All passes, and the phase as `zero-fuse-pipeline`.
void registerPasses();
} // namespace zero::fuse
