//===- accesses.cpp - how loads and stores of a GPU's kernel are aligned ----------------------------------===//
#include "compiler/codegen/ptx/accesses.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include <algorithm>

namespace zero::codegen {
namespace {

constexpr unsigned kAny = 63; // of zero

/// Zeros at the low end of a kernel's whole numbers: the most that contradict nothing, since a loop's counter is made of itself.
class LowZeros {
public:
  explicit LowZeros(llvm::Function &kernel) {
    for (bool changed = true; changed;) {
      changed = false;
      for (llvm::Instruction &instruction : llvm::instructions(kernel)) {
        if (!instruction.getType()->isIntegerTy()) continue;
        unsigned found = find(llvm::cast<llvm::Operator>(&instruction)), before = of(&instruction);
        if (found < before) zeros[&instruction] = found, changed = true;
      }
    }
  }

  unsigned of(llvm::Value *v) const {
    if (auto *number = llvm::dyn_cast<llvm::ConstantInt>(v)) return number->isZero() ? kAny : number->getValue().countr_zero();
    if (!llvm::isa<llvm::Instruction>(v)) return 0;
    auto known = zeros.find(v);
    return known == zeros.end() ? kAny : known->second;
  }

private:
  unsigned find(llvm::Operator *op) const {
    auto least = [&](auto &&values) {
      unsigned all = kAny;
      for (llvm::Value *each : values) all = std::min(all, of(each));
      return all;
    };
    switch (op->getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Or:
    case llvm::Instruction::URem: // a multiple of what both are multiples of
    case llvm::Instruction::SRem:
      return least(op->operand_values());
    case llvm::Instruction::Mul:
      return std::min(kAny, of(op->getOperand(0)) + of(op->getOperand(1)));
    case llvm::Instruction::Shl:
      if (auto *by = llvm::dyn_cast<llvm::ConstantInt>(op->getOperand(1)))
        return unsigned(std::min<uint64_t>(kAny, of(op->getOperand(0)) + by->getZExtValue()));
      return of(op->getOperand(0));
    case llvm::Instruction::ZExt:
    case llvm::Instruction::SExt:
    case llvm::Instruction::Trunc:
      return of(op->getOperand(0));
    case llvm::Instruction::PHI:
      return least(llvm::cast<llvm::PHINode>(op)->incoming_values());
    case llvm::Instruction::Select:
      return std::min(of(op->getOperand(1)), of(op->getOperand(2)));
    case llvm::Instruction::Call:
      if (llvm::isa<llvm::MinMaxIntrinsic>(op)) return std::min(of(op->getOperand(0)), of(op->getOperand(1)));
      return 0;
    default:
      return 0;
    }
  }

  llvm::DenseMap<llvm::Value *, unsigned> zeros;
};

/// The tensor is a descriptor until it is taken apart.
llvm::Value *pointerIn(llvm::Value *v) {
  while (auto *part = llvm::dyn_cast<llvm::ExtractValueInst>(v)) {
    llvm::Value *found = llvm::FindInsertedValue(part->getAggregateOperand(), part->getIndices());
    if (!found || found == v) break;
    v = found;
  }
  return v;
}

} // namespace

void alignAccesses(llvm::Function &kernel) {
  const llvm::DataLayout &layout = kernel.getParent()->getDataLayout();
  const LowZeros zeros(kernel);
  auto alignmentOf = [&](llvm::Value *pointer) -> llvm::Align {
    auto *place = llvm::dyn_cast<llvm::GEPOperator>(pointer);
    if (!place || place->getNumIndices() != 1) return {};
    auto *tensor = llvm::dyn_cast<llvm::Argument>(pointerIn(place->getPointerOperand()));
    if (!tensor) return {};
    uint64_t bytes = layout.getTypeAllocSize(place->getSourceElementType()).getFixedValue();
    unsigned low = std::min(12u, zeros.of(place->getOperand(1))); // 4096 elements are more than anything asks for
    return std::min(tensor->getParamAlign().valueOrOne(), llvm::Align((bytes & -bytes) << low));
  };
  for (llvm::Instruction &instruction : llvm::instructions(kernel)) {
    if (auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction); load && load->getType()->isVectorTy())
      load->setAlignment(std::max(load->getAlign(), alignmentOf(load->getPointerOperand())));
    if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction); store && store->getValueOperand()->getType()->isVectorTy())
      store->setAlignment(std::max(store->getAlign(), alignmentOf(store->getPointerOperand())));
  }
}

} // namespace zero::codegen
