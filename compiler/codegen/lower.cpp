//===- lower.cpp - vector code of kernels to LLVM IR, and to better LLVM IR ------------------------------===//
// Kernels are emitted into a context of their own, lowered by the conversions of MLIR, and optimised by LLVM.
#include "compiler/codegen/lower.h"
#include "compiler/codegen/codegen.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Passes/PassBuilder.h"

using namespace mlir;

namespace zero::codegen {

static LogicalResult lower(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  pm.addNestedPass<func::FuncOp>(createCSEPass()); // each index and guard is emitted where it is needed
  // While branches are regions: among blocks it would join equal ones, of which each knows what tensor it reads.
  ConvertVectorToLLVMPassOptions vectors;
  vectors.force32BitVectorIndices = false;
  pm.addPass(createConvertVectorToLLVMPass(vectors));
  pm.addPass(createConvertSCFToCFPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createArithToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(functions));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  return pm.run(module);
}

llvm::Expected<std::unique_ptr<llvm::Module>> lowerKernels(llvm::LLVMContext &llvmContext,
                                                           llvm::function_ref<void(ModuleOp, Location)> emit) {
  DialectRegistry registry;
  registerDialects(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string said;
  ScopedDiagnosticHandler keep(&context, [&](Diagnostic &d) {
    if (said.empty()) said = d.str();
    return success();
  });
  auto failed = [&](const char *what) {
    return llvm::createStringError("kernels could not be " + std::string(what) + (said.empty() ? "" : ": " + said));
  };

  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  emit(*module, loc);
  if (mlir::failed(verify(*module)) || mlir::failed(lower(*module))) return failed("lowered");
  auto code = translateModuleToLLVMIR(*module, llvmContext, "kernels");
  if (!code) return failed("translated");
  return code;
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = false; // the code is vectors already
  tuning.LoopInterleaving = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

} // namespace zero::codegen
