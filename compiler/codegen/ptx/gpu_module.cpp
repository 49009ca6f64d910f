//===- gpu_module.cpp - kernels as LLVM IR for one thread of a GPU ----------------------------------------===//
#include "compiler/codegen/ptx/gpu_module.h"
#include "compiler/codegen/lower.h"
#include "compiler/codegen/ptx/accesses.h"
#include "compiler/codegen/ptx/emit_gpu.h"
#include "compiler/codegen/ptx/warpgroup.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
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
    if (auto *call = dyn_cast<llvm::CallInst>(&instruction); call && call->getCalledFunction())
      if (StringRef name = call->getCalledFunction()->getName();
          name.starts_with("llvm.nvvm.mma.") || name.starts_with("llvm.nvvm.ldmatrix.") || name.starts_with(kWarpgroupCalls))
        call->setConvergent();
}

/// Of a loop: numbers that its instructions make, its loads and their bytes, and whether it waits for other threads.
struct Body {
  explicit Body(const llvm::Loop &loop) {
    for (llvm::BasicBlock *block : loop.blocks())
      for (llvm::Instruction &instruction : *block) {
        auto *vector = dyn_cast<llvm::FixedVectorType>(instruction.getType());
        numbers += vector ? vector->getNumElements() : 1;
        if (auto *load = dyn_cast<llvm::LoadInst>(&instruction)) {
          ++loads;
          bytes += unsigned(llvm::divideCeil(load->getType()->getPrimitiveSizeInBits().getFixedValue(), 8));
        }
        auto *call = dyn_cast<llvm::CallBase>(&instruction);
        waits |= call && call->isConvergent();
      }
  }
  unsigned numbers = 0, loads = 0, bytes = 0;
  bool waits = false;
};

/// A thread that goes over a row or down a column waits for memory each time around, unless several loads are under way: loops with few of
/// them that wait for no other thread are unrolled, as far as there are registers for as many threads, and those with enough stay as they
/// are. Sums keep their order.
void unrollLoads(llvm::Function &function) {
  // Bytes and loads under way, and the bytes that are enough; numbers of a body that goes more than twice.
  constexpr unsigned kBytes = 128, kLoads = 16, kEnough = 64, kShort = 96;
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  llvm::LLVMContext &context = function.getContext();
  for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost()) continue;
    Body body(*loop);
    if (body.waits || body.bytes == 0) continue;
    unsigned most = std::min({kBytes / body.bytes, kLoads / body.loads, body.numbers <= kShort ? 8u : 2u});
    unsigned times = body.bytes < kEnough ? llvm::bit_floor(most) : 1;
    SmallVector<llvm::Metadata *> wish{llvm::MDString::get(context, times < 2 ? "llvm.loop.unroll.disable" : "llvm.loop.unroll.count")};
    if (times > 1) wish.push_back(llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), times)));
    auto *id = llvm::MDNode::getDistinct(context, {nullptr, llvm::MDNode::get(context, wish)});
    id->replaceOperandWith(0, id);
    loop->setLoopID(id);
  }
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
    const Program &program = kernel->program; // whose numbers of rows are of 32 bits in lists of updates
    if (program.kind == Program::Scatter && std::max(program.points(program.reduced), program.points(program.outer)) > INT32_MAX)
      return llvm::createStringError("kernel '" + kernel->info.symbol + "' adds to or from more than " + std::to_string(INT32_MAX) +
                                     " rows; compile for a smaller batch");
  }
  auto lowered = lowerKernels(context, [&](ModuleOp module, Location loc) {
    for (auto [kernel, division] : llvm::zip(kernels, divisions)) emitForGpu(kernel->program, division, module, loc);
  });
  if (!lowered) return lowered.takeError();
  for (auto [kernel, division] : llvm::zip(kernels, divisions)) {
    llvm::Function *function = (*lowered)->getFunction(kernel->info.symbol);
    boundThreads(*function, division);
    keepTogether(*function);
    unrollLoads(*function);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    for (auto [i, bytes] : llvm::enumerate(kernel->alignment))
      function->addParamAttr(unsigned(i), llvm::Attribute::getWithAlignment(context, llvm::Align(bytes)));
    alignAccesses(*function);
  }
  return std::move(*lowered);
}

} // namespace zero::codegen
