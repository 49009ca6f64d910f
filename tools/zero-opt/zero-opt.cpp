//===- zero-opt.cpp - mlir-opt with the project's dialects, passes and pipelines ------------------===//
// The dialects are named one by one: all of MLIR's would cost a minute of compile time for nothing.
#include "compiler/codegen/codegen.h"
#include "compiler/nn/Nn.h"
#include "compiler/nn/eval/evaluate_pass.h"
#include "compiler/plan/Plan.h"
#include "compiler/zero/Zero.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/fuse/Passes.h"
#include "passes/place/Passes.h"
#include "passes/raise/Passes.h"
#include "passes/schedule/Passes.h"
#include "passes/shard/Passes.h"
#include "passes/train/Passes.h"
#include "runtime/process/streams.h"
#include "llvm/Support/CommandLine.h"

int main(int argc, char **argv) {
  zero::runtime::openStandardStreams();
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, zero::nn::NnDialect, zero::state::ZeroDialect, zero::planir::PlanDialect>();
  zero::codegen::registerDialects(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerInlinerPass();
  mlir::registerSymbolDCEPass();
  mlir::registerPrintOpStatsPass();
  zero::nn::registerEvaluatePass();
  zero::raise::registerPasses(); // in pipeline order
  zero::train::registerPasses();
  zero::fuse::registerPasses();
  zero::shard::registerPasses();
  zero::schedule::registerPasses();
  zero::place::registerPasses();
  // What LLVM's code generators register for themselves drowns this tool's passes; --help-hidden still lists it.
  for (auto &entry : llvm::cl::getRegisteredOptions())
    if (llvm::is_contained(entry.second->Categories, &llvm::cl::getGeneralCategory())) entry.second->setHiddenFlag(llvm::cl::Hidden);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "ZeRO compiler: passes over nn, zero and plan\n", registry));
}
