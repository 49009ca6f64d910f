//===- machine_code.cpp - what a plan runs on, and its kernels for that ---------------------------------===//
#include "passes/pipeline/machine_code.h"
#include "compiler/zero/Zero.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/pipeline/alignments.h"
#include "runtime/plan/target.h"

using namespace mlir;

namespace zero::pipeline {

bool MachineCode::describe(ModuleOp module, plan::Target &target) {
  target.set_kind(options.target);
  if (options.target == plan::Target::SIM) return true;
  std::string error;
  if (options.target == plan::Target::CUDA) {
    auto named = codegen::GpuTarget::fromName(options.gpu, error);
    if (failed(named)) {
      say("error", error);
      return false;
    }
    gpu = *named;
    target.add_features(gpu.architecture);
    bool updates = llvm::any_of(module.getOps<state::BucketOp>(), [](state::BucketOp bucket) { return bucket.getUpdatedOnHost(); });
    return !updates || describeCpu(target, *target.mutable_host_features());
  }
  return describeCpu(target, *target.mutable_features());
}

bool MachineCode::describeCpu(plan::Target &target, google::protobuf::RepeatedPtrField<std::string> &features) {
  std::string error;
  auto named = codegen::CpuTarget::fromName(options.cpu, error);
  if (failed(named)) {
    say("error", error);
    return false;
  }
  cpu = *named;
  target.set_cpu(cpu.name);
  for (const std::string &feature : cpu.features) *features.Add() = feature;
  return true;
}

bool MachineCode::generate(ModuleOp module, const plan::Plan &plan, Code &code) const {
  llvm::SmallVector<func::FuncOp> kernels, onHost;
  for (const plan::Kernel &kernel : plan.kernels())
    (plan::isForHost(plan, kernel) ? onHost : kernels).push_back(module.lookupSymbol<func::FuncOp>(kernel.symbol()));
  if (options.target == plan::Target::CUDA) {
    llvm::SmallVector<codegen::GpuKernel> aligned;
    for (auto [kernel, alignment] : llvm::zip(kernels, argumentAlignments(plan))) aligned.push_back({kernel, alignment});
    auto text = codegen::compileToPtx(aligned, gpu, options.threads);
    if (failed(text)) return false;
    code.kernels.assign(text->begin(), text->end());
    return onHost.empty() || toObject(onHost, code.onHost);
  }
  return toObject(kernels, code.kernels);
}

bool MachineCode::toObject(ArrayRef<func::FuncOp> kernels, std::vector<char> &code) const {
  auto object = codegen::compileToSharedObject(kernels, cpu, options.threads);
  if (failed(object)) return false;
  code.assign(object->begin(), object->end());
  return true;
}

} // namespace zero::pipeline
