//===- gpu_module.cpp - kernels as LLVM IR for one thread of a GPU ----------------------------------------===//
#include "compiler/codegen/ptx/gpu_module.h"
#include "compiler/codegen/lower.h"
#include "compiler/codegen/ptx/accesses.h"
#include "compiler/codegen/ptx/emit_gpu.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/MDBuilder.h"

using namespace mlir;

namespace zero::codegen {
namespace {

/// Numbers of threads and blocks are small, which makes their index arithmetic that of 32 bits.
void boundThreads(llvm::Function &function, const Division &division) {
  llvm::MDBuilder metadata(function.getContext());
  for (llvm::Instruction &instruction : llvm::instructions(function)) {
    auto *call = dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (!call) continue;
    auto below = [&](uint64_t end) {
      call->setMetadata(llvm::LLVMContext::MD_range, metadata.createRange(llvm::APInt(32, 0), llvm::APInt(32, end)));
    };
    if (call->getIntrinsicID() == llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x) below(division.threads);
    if (call->getIntrinsicID() == llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x) below(division.blocks);
  }
}

/// What all threads of a warp do together stays where all of them come by. LLVM 19 knows it of shuffles, and not of these.
void keepTogether(llvm::Function &function) {
  for (llvm::Instruction &instruction : llvm::instructions(function))
    if (auto *call = dyn_cast<llvm::IntrinsicInst>(&instruction))
      if (StringRef name = call->getCalledFunction()->getName();
          name.starts_with("llvm.nvvm.mma.") || name.starts_with("llvm.nvvm.ldmatrix."))
        call->setConvergent();
}

} // namespace

llvm::Expected<std::unique_ptr<llvm::Module>> gpuModule(llvm::LLVMContext &context, ArrayRef<const KernelSource *> kernels) {
  constexpr uint64_t mostBlocks = 0x7fffffff;
  SmallVector<Division> divisions;
  for (const KernelSource *kernel : kernels) {
    divisions.push_back(divisionOf(kernel->program));
    if (divisions.back().blocks > mostBlocks)
      return llvm::createStringError("kernel '" + kernel->info.symbol + "' would take " + std::to_string(divisions.back().blocks) +
                                     " blocks, more than the " + std::to_string(mostBlocks) +
                                     " a GPU launches; compile for a smaller batch");
  }
  auto lowered = lowerKernels(context, [&](ModuleOp module, Location loc) {
    for (auto [kernel, division] : llvm::zip(kernels, divisions)) emitForGpu(kernel->program, division, module, loc);
  });
  if (!lowered) return lowered.takeError();
  for (auto [kernel, division] : llvm::zip(kernels, divisions)) {
    llvm::Function *function = (*lowered)->getFunction(kernel->info.symbol);
    boundThreads(*function, division);
    keepTogether(*function);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    for (auto [i, bytes] : llvm::enumerate(kernel->alignment))
      function->addParamAttr(unsigned(i), llvm::Attribute::getWithAlignment(context, llvm::Align(bytes)));
    alignAccesses(*function);
  }
  return std::move(*lowered);
}

} // namespace zero::codegen
