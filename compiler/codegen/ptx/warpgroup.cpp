//===- warpgroup.cpp - what four warps do together, as PTX ------------------------------------------------===//
// PTX ISA, "Asynchronous warpgroup level matrix instructions". A product is begun and waited for in one piece of assembler: warpgroups of
// other blocks use the matrix units meanwhile, and ptxas needs to prove nothing about registers of products under way.
#include "compiler/codegen/ptx/warpgroup.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace zero::codegen {
namespace {

constexpr unsigned kSums = 32, kWords = 16, kSteps = 4; // of a thread; products of 16 terms
// In units of 16 bytes, as descriptors have them: from a step's columns to the next one's in a row, and from its rows to the next one's.
constexpr unsigned kColumns16 = 2, kRows16 = 128;

/// Of a panel: its address, 1024 bytes from eight rows to the next eight, swizzling by 128 bytes. The distance of panels side by side is
/// not used by products of 64 rows and columns.
Value *descriptor(IRBuilder<> &b, Value *panel) {
  constexpr uint64_t kOthers = uint64_t(1) << 62 | uint64_t(1024 / 16) << 32 | uint64_t(1) << 16;
  constexpr uint64_t kAddress = 0x3fff;
  Value *address = b.CreatePtrToInt(panel, b.getInt32Ty());
  return b.CreateOr(b.CreateZExt(b.CreateAnd(b.CreateLShr(address, 4), kAddress), b.getInt64Ty()), kOthers);
}

/// "{$0, $1, ...}"
std::string registers(unsigned first, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i) text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

/// The product of four steps that begins with what the sums hold, or with nothing. Operands follow the sums and, where these come in, the
/// 32 of them once more: the panels' descriptors, or 16 words and that of the right operand's panel.
std::string product(bool adds, bool fromWords) {
  unsigned next = kSums * (adds ? 2 : 1);
  unsigned right = next + (fromWords ? kWords : 1);
  std::string text = "{\n\t.reg .pred adds;\n\t.reg .b64 left, right;\n\twgmma.fence.sync.aligned;\n";
  for (unsigned step = 0; step < kSteps; ++step) {
    std::string left = "left";
    if (fromWords)
      left = registers(next + 4 * step, 4);
    else
      text += formatv("\tadd.s64 left, ${0}, {1};\n", next, step * kColumns16);
    text += formatv("\tadd.s64 right, ${0}, {1};\n", right, step * (fromWords ? kRows16 : kColumns16));
    text += formatv("\tsetp.ne.b32 adds, {0}, 0;\n", adds || step > 0 ? 1 : 0);
    // Of what comes from shared memory rows are rows of the left operand and columns of the right one, unless it is said to be transposed.
    text += "\twgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " + registers(0, kSums) + ", " + left + ", right, adds, 1, 1" +
            (fromWords ? ", 1" : ", 0, 0") + ";\n";
  }
  return text + "\twgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;\n\t}";
}

std::string constraints(bool adds, bool fromWords) {
  std::string text;
  for (unsigned i = 0; i < kSums; ++i) text += "=f,";
  for (unsigned i = 0; adds && i < kSums; ++i) text += std::to_string(i) + ",";
  if (fromWords)
    for (unsigned i = 0; i < kWords; ++i) text += "r,";
  else
    text += "l,";
  return text + "l,~{memory}";
}

/// The call as assembler with the same results; panels are given by their descriptors.
void lower(CallInst *call) {
  StringRef name = call->getCalledFunction()->getName();
  IRBuilder<> b(call);
  bool fence = name == kFenceShared, fromWords = name == kPlusTimes, adds = name != kTimesTransposed;
  SmallVector<Value *> operands;
  SmallVector<Type *> types;
  for (Value *operand : call->args()) {
    operands.push_back(operand->getType()->isPointerTy() ? descriptor(b, operand) : operand);
    types.push_back(operands.back()->getType());
  }
  auto *type = FunctionType::get(call->getType(), types, false);
  auto *code = fence ? InlineAsm::get(type, "fence.proxy.async.shared::cta;", "~{memory}", true)
                     : InlineAsm::get(type, product(adds, fromWords), constraints(adds, fromWords), true);
  CallInst *made = b.CreateCall(code, operands);
  made->setConvergent();
  call->replaceAllUsesWith(made);
  call->eraseFromParent();
}

} // namespace

void lowerWarpgroupCalls(Module &module) {
  SmallVector<CallInst *> calls;
  for (Function &f : module)
    for (Instruction &i : instructions(f))
      if (auto *call = dyn_cast<CallInst>(&i);
          call && call->getCalledFunction() && call->getCalledFunction()->getName().starts_with(kWarpgroupCalls))
        calls.push_back(call);
  for (CallInst *call : calls) lower(call);
}

} // namespace zero::codegen
