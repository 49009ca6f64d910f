//===- zero-opt.cpp - mlir-opt with the project's dialects, passes and pipelines ------------------===//
#include "compiler/nn/Nn.h"
#include "compiler/nn/eval/evaluate_pass.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#ifdef ZERO_HAS_DIALECT_ZERO
#include "compiler/zero/Zero.h"
#endif
#ifdef ZERO_HAS_DIALECT_PLAN_IR
#include "compiler/plan/Plan.h"
#endif
#ifdef ZERO_HAS_PASSES_RAISE
#include "passes/raise/Passes.h"
#endif
#ifdef ZERO_HAS_PASSES_TRAIN
#include "passes/train/Passes.h"
#endif
#ifdef ZERO_HAS_PASSES_FUSE
#include "passes/fuse/Passes.h"
#endif
#ifdef ZERO_HAS_PASSES_SHARD
#include "passes/shard/Passes.h"
#endif
#ifdef ZERO_HAS_PASSES_SCHEDULE
#include "passes/schedule/Passes.h"
#endif
#ifdef ZERO_HAS_PASSES_PLACE
#include "passes/place/Passes.h"
#endif

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, zero::nn::NnDialect>();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerInlinerPass();
  mlir::registerSymbolDCEPass();
  mlir::registerPrintOpStatsPass();
  zero::nn::registerEvaluatePass();
#ifdef ZERO_HAS_DIALECT_ZERO
  registry.insert<zero::state::ZeroDialect>();
#endif
#ifdef ZERO_HAS_DIALECT_PLAN_IR
  registry.insert<zero::planir::PlanDialect>();
#endif
#ifdef ZERO_HAS_PASSES_RAISE
  zero::raise::registerPasses();
#endif
#ifdef ZERO_HAS_PASSES_TRAIN
  zero::train::registerPasses();
#endif
#ifdef ZERO_HAS_PASSES_FUSE
  zero::fuse::registerPasses();
#endif
#ifdef ZERO_HAS_PASSES_SHARD
  zero::shard::registerPasses();
#endif
#ifdef ZERO_HAS_PASSES_SCHEDULE
  zero::schedule::registerPasses();
#endif
#ifdef ZERO_HAS_PASSES_PLACE
  zero::place::registerPasses();
#endif
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "ZeRO compiler: passes over nn, zero and plan\n", registry));
}
