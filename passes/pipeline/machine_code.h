//===- machine_code.h - what a plan runs on, and its kernels for that -----------------------------------===//
#pragma once
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/ptx/ptx.h"
#include "passes/pipeline/compile.h"

namespace zero::pipeline {

/// Of a plan: for its device, and for the host's processors beside that.
struct Code {
  std::vector<char> kernels, onHost;
};

class MachineCode {
public:
  MachineCode(const CompileOptions &options, const Say &say) : options(options), say(say) {}

  /// Fills in what the module's plan runs on. False, with an error said, for one that nobody knows.
  bool describe(mlir::ModuleOp module, plan::Target &target);
  /// The kernels of the module's plan, whose target was described. Fails with an error.
  bool generate(mlir::ModuleOp module, const plan::Plan &plan, Code &code) const;

private:
  bool describeCpu(plan::Target &target, google::protobuf::RepeatedPtrField<std::string> &features);
  bool toObject(llvm::ArrayRef<mlir::func::FuncOp> kernels, std::vector<char> &code) const;

  const CompileOptions &options;
  const Say &say;
  codegen::CpuTarget cpu;
  codegen::GpuTarget gpu;
};

} // namespace zero::pipeline
